"""Reference solution: Gaussian processes on derivatives of the spectra, one a component.

Measured on one core, MCRMSE on Reward with the spectra as they are: nearest neighbours 6.8 in 0.01 s, random
forest 6.0 in 0.5 s, small neural network 5.6 in 0.6 s, linear regression 3.6 in 0.01 s, partial least squares
1.9 in 0.02 s, ridge regression 1.9 in 0.01 s (without the imports).
"""

import numpy as np
import pandas as pd
from scipy.signal import savgol_filter
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

train = pd.read_csv("data/train.csv")
test = pd.read_csv("data/test.csv")
channels = [column for column in train.columns if column.startswith("x_")]
targets = ["water", "fat", "protein"]


def features_of(table):
    spectra = table[channels].to_numpy()
    spectra = (spectra - spectra.mean(axis=1, keepdims=True)) / spectra.std(axis=1, keepdims=True)
    return savgol_filter(spectra, window_length=9, polyorder=3, deriv=2, axis=1)


kernel = ConstantKernel(10.0) * RBF(20.0, (1, 1e3)) + WhiteKernel(0.01, (1e-6, 1))
model = make_pipeline(StandardScaler(), GaussianProcessRegressor(kernel, normalize_y=True, random_state=0))
held_out = cross_val_predict(model, features_of(train), train[targets], cv=4)
print("cross-validated MCRMSE:", np.sqrt(((held_out - train[targets]) ** 2).mean()).mean())

submission = test[["id"]].copy()
for target in targets:
    submission[target] = model.fit(features_of(train), train[target]).predict(features_of(test))
submission.to_csv("submission.csv", index=False)
