"""What all mechanisms share: grids, arrays, tails, calibration, clipping, exact sums."""
