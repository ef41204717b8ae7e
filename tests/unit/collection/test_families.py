"""Model families of scripts as models write them."""

from __future__ import annotations

import pytest
from mlwright_trainer.collection.families import model_families, model_family


@pytest.mark.parametrize(
    ("script", "family"),
    [
        (
            "from sklearn.ensemble import RandomForestClassifier\nm = RandomForestClassifier()",
            "random forest",
        ),
        ("from sklearn.ensemble import RandomForestRegressor as R\nR().fit(x, y)", "random forest"),
        ("import sklearn.ensemble as e\ne.ExtraTreesClassifier()", "extra trees"),
        ("import sklearn.linear_model\nsklearn.linear_model.Ridge()", "linear model"),
        ("from sklearn import svm\nsvm.SVC()", "support vector machine"),
        ("from sklearn.linear_model import *\nLogisticRegression()", "logistic regression"),
        ("from sklearn.ensemble import HistGradientBoostingClassifier as H\nH()", "gradient boosting"),
        ("import xgboost as xgb\nxgb.XGBClassifier()", "gradient boosting"),
        ("import xgboost as xgb\nxgb.train({}, d)", "gradient boosting"),
        ("import lightgbm as lgb\nlgb.train({}, d)", "gradient boosting"),
        ("from catboost import CatBoostRegressor\nCatBoostRegressor()", "gradient boosting"),
        ("from sklearn.tree import DecisionTreeClassifier\nDecisionTreeClassifier()", "decision tree"),
        ("from sklearn.naive_bayes import GaussianNB\nGaussianNB()", "naive Bayes"),
        ("from sklearn.neighbors import KNeighborsClassifier\nKNeighborsClassifier()", "nearest neighbours"),
        ("from sklearn.neural_network import MLPClassifier\nMLPClassifier()", "neural network"),
        ("import torch\nclass N(torch.nn.Module): pass", "neural network"),
        ("import torch.nn as nn\nnn.Linear(1, 1)", "neural network"),
        ("from torch import nn\nnn.Linear(1, 1)", "neural network"),
        ("from tensorflow import keras\nkeras.Sequential()", "neural network"),
        ("import statsmodels.api as sm\nsm.OLS(y, x).fit()", "linear model"),
        ("from sklearn.dummy import DummyClassifier\nDummyClassifier()", "constant predictor"),
        (
            "from sklearn.ensemble import BaggingClassifier\nfrom sklearn.tree import DecisionTreeClassifier\n"
            "BaggingClassifier(DecisionTreeClassifier())",
            "bagging",
        ),
        (
            "from sklearn.pipeline import make_pipeline\nfrom sklearn.preprocessing import StandardScaler\n"
            "from sklearn.linear_model import LogisticRegression\n"
            "make_pipeline(StandardScaler(), LogisticRegression())",
            "logistic regression",
        ),
        (
            "from sklearn.linear_model import LogisticRegression\nfrom sklearn.svm import SVC\n"
            "for m in (LogisticRegression, SVC):\n    m().fit(x, y)",
            "several",
        ),
        ("from sklearn.ensemble import VotingClassifier\nVotingClassifier([])", "several"),
        ("import pandas as pd\npd.read_csv('a')", "none"),
        ("from sklearn.ensemble import RandomForestClassifier\nprint(1)", "none"),
        ("RandomForestClassifier()", "none"),
        ("class Ridge: pass\nRidge()", "none"),
        ("from mine import Ridge\nRidge()", "none"),
        ("from sklearn.metrics import roc_auc_score\nroc_auc_score(y, p)", "none"),
        ("x = (", "not Python"),
    ],
)
def test_the_family_is_read_off_the_syntax_tree(script: str, family: str) -> None:
    assert model_family(script) == family


def test_all_families_in_use_are_named() -> None:
    script = "from sklearn.linear_model import Ridge, LogisticRegression\nRidge()\nLogisticRegression()"
    assert model_families(script) == {"linear model", "logistic regression"}
