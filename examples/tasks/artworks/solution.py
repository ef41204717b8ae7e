"""Reference solution: ridge regression on words and letters, rounded at thresholds found by cross-validation.

Measured on one core, QWK on Reward with words as features: nearest neighbours 0.48 in 0.2 s, logistic
regression 0.53 in 0.1 s, naive Bayes 0.56 in 0.06 s, ridge regression 0.59 in 0.09 s, support vectors 0.60 in
0.08 s (linear) and 0.60 in 0.4 s, random forest 0.51 in 1 s and, as a regression, 0.56 in 3.3 s.
"""

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Ridge
from sklearn.metrics import cohen_kappa_score
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

train = pd.read_csv("data/train.csv", keep_default_na=False)
test = pd.read_csv("data/test.csv", keep_default_na=False)


def letters(**settings):
    return TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True, **settings)


model = make_pipeline(
    make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["artist"]),
        (letters(min_df=2), "title"),
        (letters(min_df=2), "medium"),
        (TfidfVectorizer(ngram_range=(1, 3), sublinear_tf=True), "medium"),
    ),
    Ridge(alpha=1.0),
)


def to_periods(values, thresholds):
    return 1 + np.searchsorted(np.sort(thresholds), values)


target = train["period"]
expected = cross_val_predict(model, train, target, cv=5)
start = np.quantile(expected, np.cumsum(target.value_counts(normalize=True).sort_index())[:-1])
found = minimize(
    lambda thresholds: -cohen_kappa_score(target, to_periods(expected, thresholds), weights="quadratic"),
    start,
    method="Nelder-Mead",
)
print("cross-validated QWK:", -found.fun)

model.fit(train, target)
submission = test[["id"]].assign(period=to_periods(model.predict(test), found.x))
submission.to_csv("submission.csv", index=False)
