"""Identification of annotation errors by means of answers (L-CSTS, section 4.2).

answers     answer pairs: their file, the reannotated labels and their vectors
detection   topics by k-means, rank labels within topics, and suspicious labels with reasons
evaluation  halves, precision, recall, F1, MCC, Spearman, the curve over K and its chart, the choice of K
"""
