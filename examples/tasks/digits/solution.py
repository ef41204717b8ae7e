"""Reference solution: support vectors on histograms of gradients (HOG).

Measured on one core, accuracy on Reward with pixels as features: naive Bayes 0.59 in 0.2 s, one tree 0.75 in
0.3 s, logistic regression 0.90 in 0.7 s, nearest neighbours 0.92 in 0.2 s, small neural network 0.92 in 1.9 s,
histogram boosting 0.92 in 11 s, random forest 0.93 in 1.8 s, support vectors 0.95 in 1.3 s (without the imports).
"""

import numpy as np
import pandas as pd
from sklearn.decomposition import PCA
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC


def oriented_gradients(images, cell=4, bins=8):
    """Histograms of gradient directions in overlapping cells, as in HOG: (n, 28, 28) to (n, 36 * bins)."""
    images = images.astype(float) / 255
    dy, dx = np.gradient(images, axis=(1, 2))
    size = np.hypot(dx, dy)
    direction = (np.arctan2(dy, dx) % (2 * np.pi)) * bins / (2 * np.pi)
    features = []
    for index in range(bins):
        distance = np.abs((direction - index + bins / 2) % bins - bins / 2)
        weighted = size * np.clip(1 - distance, 0, None)
        blocks = weighted.reshape(len(images), 28 // cell, cell, 28 // cell, cell).sum(axis=(2, 4))
        features.append(blocks[:, :-1, :-1] + blocks[:, 1:, :-1] + blocks[:, :-1, 1:] + blocks[:, 1:, 1:])
    stacked = np.stack(features, axis=-1)
    stacked /= np.linalg.norm(stacked, axis=-1, keepdims=True) + 0.5
    return stacked.reshape(len(images), -1)


train = pd.read_csv("data/train.csv")
test = pd.read_csv("data/test.csv")
features = oriented_gradients(np.load("data/train_images.npy"))

model = make_pipeline(StandardScaler(), PCA(100, random_state=0), SVC(C=5, gamma="scale"))
print("accuracy of 3 folds:", cross_val_score(model, features, train["label"], cv=3).mean())
model.fit(features, train["label"])

predicted = model.predict(oriented_gradients(np.load("data/test_images.npy")))
test[["id"]].assign(label=predicted).to_csv("submission.csv", index=False)
