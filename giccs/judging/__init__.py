"""Language models as annotators of best-worst scaling.

prompts     wordings of the two questions about a tuple
questions   tuples with their dialogues, and the orders in which their items are shown
judge       a model that answers the questions
answers     best and worst item in its answers
study       judgments of all tuples, in all orders, with all prompts
"""
