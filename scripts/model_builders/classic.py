"""Classic models of the ai.onnx.ml domain: scikit-learn estimators fitted on its bundled data, converted by skl2onnx."""

import warnings

import numpy as np
from skl2onnx import to_onnx
from skl2onnx.common.data_types import FloatTensorType, StringTensorType
from sklearn.cluster import KMeans
from sklearn.datasets import load_diabetes, load_digits, load_iris
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
)
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer, Normalizer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR

DOCUMENTS = [
    "the quick brown fox",
    "lazy dogs sleep",
    "quick dogs run",
    "brown foxes jump over the lazy dog",
    "hello onnx world",
    "classic models",
] * 5
DOCUMENT_LABELS = [0, 1, 0, 1, 0, 1] * 5
CATEGORIES = np.array([["red", "S"], ["green", "M"], ["blue", "L"], ["red", "L"]] * 10)
CATEGORY_LABELS = [0, 1, 1, 0] * 10


def _data(loader):
    x, y = loader(return_X_y=True)
    return x.astype(np.float32), y


def _digits():
    return _data(load_digits)


def _iris():
    return _data(load_iris)


def _diabetes():
    return _data(load_diabetes)


def _categories():
    return CATEGORIES, CATEGORY_LABELS


def _documents():
    return DOCUMENTS, DOCUMENT_LABELS


# name: estimator, training data, whether the probabilities stay a list of dictionaries (ZipMap)
MODELS = {
    "skl_rf_digits": (lambda: RandomForestClassifier(100, random_state=0), _digits, False),
    "skl_rf_digits_zipmap": (lambda: RandomForestClassifier(100, random_state=0), _digits, True),
    "skl_gbr_diabetes": (lambda: GradientBoostingRegressor(random_state=0), _diabetes, None),
    "skl_gbc_iris": (lambda: GradientBoostingClassifier(n_estimators=20, random_state=0), _iris, False),
    "skl_scaler_logreg_digits": (
        lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)),
        _digits,
        False,
    ),
    "skl_svc_iris": (lambda: SVC(probability=True, random_state=0), _iris, False),
    "skl_svr_diabetes": (lambda: SVR(), _diabetes, None),
    "skl_knn_iris": (lambda: KNeighborsClassifier(), _iris, False),
    "skl_mlp_digits": (lambda: MLPClassifier((64,), max_iter=100, random_state=0), _digits, False),
    "skl_gnb_iris": (lambda: GaussianNB(), _iris, False),
    "skl_kmeans_iris": (lambda: KMeans(5, random_state=0, n_init=3), _iris, None),
    "skl_iforest_iris": (lambda: IsolationForest(n_estimators=20, random_state=0), _iris, None),
    "skl_tfidf_logreg": (lambda: make_pipeline(TfidfVectorizer(), LogisticRegression()), _documents, False),
    "skl_onehot_logreg": (
        lambda: make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression()),
        _categories,
        False,
    ),
    "skl_norm_bin_logreg": (
        lambda: make_pipeline(Normalizer(), Binarizer(threshold=0.1), LogisticRegression()),
        _iris,
        False,
    ),
}


def build(name, target):
    make, load, zipmap = MODELS[name]
    x, y = load()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make().fit(x, y)
    if isinstance(x, list):
        shape = [("X", StringTensorType([None]))]
    elif x.dtype.kind == "U":
        shape = [("X", StringTensorType([None, x.shape[1]]))]
    else:
        shape = [("X", FloatTensorType([None, x.shape[1]]))]
    options = {}
    if zipmap is False:
        options[id(model)] = {"zipmap": False}
    if isinstance(x, list):
        options[TfidfVectorizer] = {"locale": "C"}
    onx = to_onnx(model, initial_types=shape, target_opset={"": 18, "ai.onnx.ml": 3}, options=options or None)
    with open(target, "wb") as file:
        file.write(onx.SerializeToString())
