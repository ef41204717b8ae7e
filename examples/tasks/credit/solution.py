"""Reference solution: logistic regression and gradient boosting, averaged by rank.

Measured on one core, AUC on Reward: naive Bayes 0.79 in 0.03 s, nearest neighbours 0.80 in 0.05 s, one tree 0.64
in 0.02 s, histogram boosting 0.81 in 0.2 s, random forest 0.82 in 0.9 s, gradient boosting 0.83 in 0.3 s, support
vectors 0.84 in 0.5 s, logistic regression 0.85 in 0.02 s (without the imports, on the columns as they are).
"""

import numpy as np
import pandas as pd
from scipy.stats import rankdata
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler


def features_of(table):
    features = table.drop(columns=["id", "default"], errors="ignore")
    features["loan_to_value"] = features["amount"] / features["price"]
    features["instalment"] = features["amount"] / features["time"]
    features["free_income"] = features["income"] - features["expenses"] - features["instalment"]
    for column in ("assets", "debt", "price", "seniority", "income"):
        features[f"log_{column}"] = np.log1p(features[column])
    return features


def encoder():
    return make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include="number")),
        (
            OneHotEncoder(handle_unknown="ignore", sparse_output=False),
            make_column_selector(dtype_exclude="number"),
        ),
    )


def fit_and_predict(train, target, test):
    models = [
        LogisticRegression(C=0.3, max_iter=2000),
        GradientBoostingClassifier(
            n_estimators=150, learning_rate=0.06, max_depth=3, subsample=0.7, random_state=0
        ),
    ]
    scores = [
        rankdata(make_pipeline(encoder(), model).fit(train, target).predict_proba(test)[:, 1])
        for model in models
    ]
    return np.mean(scores, axis=0) / len(test)


train = pd.read_csv("data/train.csv")
test = pd.read_csv("data/test.csv")
features, target = features_of(train), train["default"]

fitted, held, fitted_target, held_target = train_test_split(features, target, stratify=target, random_state=0)
print("held-out AUC:", roc_auc_score(held_target, fit_and_predict(fitted, fitted_target, held)))

submission = test[["id"]].assign(default=fit_and_predict(features, target, features_of(test)))
submission.to_csv("submission.csv", index=False)
