"""Price a private training run, see who would have called it what, and what attackers gain."""

from discreet.accounting import GaussianLoss, bracket, calibrate, compare, most_steps, risk

RATE, NOISE, STEPS, DELTA = 0.01, 4, 10_000, 1e-5


def main() -> None:
    """Print prices, methods and risks of one run."""
    step = GaussianLoss(noise_multiplier=NOISE).sampled(rate=RATE)
    run = step * STEPS
    found = bracket(run, delta=DELTA)
    print(f"{STEPS:,} steps, noise multiplier {NOISE}, sampling rate {RATE}, delta {DELTA:g}:")
    print(f"  epsilon is between {found.lower:.5f} and {found.upper:.5f}\n")

    print("What each accountant says:")
    for result in compare(run, delta=DELTA):
        number = "-" if result.epsilon is None else f"{result.epsilon:.4f}"
        mark = "" if result.is_bound else "  <- below the truth: not a bound"
        print(f"  {result.name:14} {number:>9}{mark}")

    print("\nWhat the best attacker gains:")
    print(f"  advantage over guessing      {risk.advantage(run):.3f}")
    for alarms in (0.001, 0.01, 0.1):
        caught = risk.detection(run, false_alarms=alarms)
        print(f"  caught at {alarms:<5} false alarms  {caught:.4f}")

    noise = calibrate(
        lambda s: GaussianLoss(noise_multiplier=s).sampled(rate=RATE) * STEPS,
        epsilon=3,
        delta=DELTA,
    )
    print(f"\nA budget of epsilon 3 needs a noise multiplier of {noise:.4f},")
    print(f"and epsilon 1 buys {most_steps(step, epsilon=1, delta=DELTA):,} steps of this one.")


if __name__ == "__main__":
    main()
