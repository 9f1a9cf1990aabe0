"""A report as one web page: a study and its models, and where each number is found again."""
