"""The page "Models": scores predicted for pairs, and answers to multiple-choice questions."""
