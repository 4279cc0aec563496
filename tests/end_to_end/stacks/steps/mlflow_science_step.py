# SPDX-License-Identifier: Apache-2.0
# A forest, boosted trees and a linear fit, each logged to MLflow and read back; a picture without a display.
import matplotlib
import mlflow
import numpy
import pandas
import seaborn
import statsmodels.api
from lightgbm import LGBMRegressor
from sklearn.ensemble import RandomForestRegressor
from xgboost import XGBRegressor

matplotlib.use("Agg")
mlflow.set_tracking_uri("sqlite:////var/tmp/mlflow.db")
numbers = numpy.random.default_rng(1)
x = pandas.DataFrame(numbers.normal(size=(200, 3)), columns=["a", "b", "c"])
y = x["a"] * 2 + numbers.normal(size=200) * 0.1
said = []
for model in (RandomForestRegressor(20, random_state=1), XGBRegressor(n_estimators=20), LGBMRegressor(n_estimators=20, verbose=-1)):
    with mlflow.start_run() as run:
        model.fit(x, y)
        mlflow.log_metric("score", model.score(x, y))
    said.append("%s %.4f" % (type(model).__name__, mlflow.get_run(run.info.run_id).data.metrics["score"]))
fit = statsmodels.api.OLS(y, x).fit()
seaborn.scatterplot(x=x["a"], y=y).figure.savefig("/var/tmp/picture.png")
print("step:", ", ".join(said), "slope %.3f" % fit.params["a"])
