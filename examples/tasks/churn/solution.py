"""Reference solution: gradient boosting and a forest on the total bill, averaged by rank.

The four charges are the minutes times a fixed price, so the total bill and the bill per call say more
than they do. Measured on one core, AUC on Reward: naive Bayes 0.63 in 0.04 s, nearest neighbours 0.84 in
0.07 s, logistic regression 0.82 in 0.03 s, one tree 0.84 in 0.04 s, AdaBoost 0.87 in 0.2 s, support
vectors 0.91 in 0.6 s, gradient boosting 0.91 in 0.7 s, random forest 0.92 in 0.5 s (without the imports,
and on the columns as they are).
"""

import pandas as pd
from scipy.stats import rankdata
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split


def features_of(table):
    features = table.drop(columns=["id", "churn", "state", "area_code"], errors="ignore")
    features = features.replace({"yes": 1, "no": 0}).infer_objects()
    charges = [f"total_{part}_charge" for part in ("day", "eve", "night", "intl")]
    features["bill"] = features[charges].sum(axis=1)
    features["bill_without_voice_mail"] = features["bill"] * (1 - features["voice_mail_plan"])
    features["intl_use"] = features["international_plan"] * features["total_intl_calls"]
    return features


def fit_and_predict(train, target, test):
    boosting = HistGradientBoostingClassifier(
        max_iter=150, learning_rate=0.05, max_leaf_nodes=15, random_state=0
    )
    forest = RandomForestClassifier(150, min_samples_leaf=2, max_features=0.4, random_state=0)
    scores = [model.fit(train, target).predict_proba(test)[:, 1] for model in (boosting, forest)]
    return (rankdata(scores[0]) + rankdata(scores[1])) / (2 * len(test))


train = pd.read_csv("data/train.csv")
test = pd.read_csv("data/test.csv")
features, target = features_of(train), train["churn"]

fitted, held, fitted_target, held_target = train_test_split(features, target, stratify=target, random_state=0)
print("held-out AUC:", roc_auc_score(held_target, fit_and_predict(fitted, fitted_target, held)))

submission = test[["id"]].assign(churn=fit_and_predict(features, target, features_of(test)))
submission.to_csv("submission.csv", index=False)
