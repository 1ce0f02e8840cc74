"""Add noise to numbers: Laplace and Gaussian, continuous and discrete."""
