"""Luxembourgish texts of annotation studies for giccs, in a package of its own: lb.po."""
