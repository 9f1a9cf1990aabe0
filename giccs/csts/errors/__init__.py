"""Error identification by answers (L-CSTS, section 4.2): which labels do not fit what was answered?

answers     answer pairs: their file, the reannotated labels beside them, their vectors
detection   topics by k-means, rank labels in each, the labels that differ from them and why
evaluation  halves, precision, recall, F1, MCC, Spearman, the curve over K and its chart, the choice of K
"""
