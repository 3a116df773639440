import warnings, numpy as np, plait, sklearn.linear_model
from sklearn.utils.estimator_checks import check_estimator
warnings.simplefilter("ignore")
done = check_estimator(plait.LinearRegression(n_jobs=1), on_fail=None)
for c in done:
    if c["status"]=="failed": print("   ", c["check_name"], str(c["exception"])[:900])
rng = np.random.RandomState(42)
X = rng.rand(15, 30); y = rng.randint(0, 3, size=15)
a=plait.LinearRegression().fit(X,y); b=sklearn.linear_model.LinearRegression().fit(X,y)
print(np.abs(a.coef_-b.coef_).max(), a.n_iter_)
for c in (1e-1,1e-2,1e-3,1e-4,1e-5):
    X=rng.rand(200,10); X[:,9]=X[:,8]+c*rng.rand(200); y=X@rng.rand(10)+rng.rand(200)
    a=plait.LinearRegression().fit(X,y); b=sklearn.linear_model.LinearRegression().fit(X,y)
    print(c, np.abs(a.coef_-b.coef_).max(), np.abs(a.predict(X)-b.predict(X)).max(), a.n_iter_)
