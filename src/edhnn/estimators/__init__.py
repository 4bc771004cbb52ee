"""The scikit-learn face: diffusion and networks as estimators."""
