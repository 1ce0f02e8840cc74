"""See what epsilon does to the best attacker, and what delta and groups add."""

from discreet import Guarantee
from discreet.privacy import advised_delta, odds, posterior, strength

EPSILONS = (0.01, 0.1, 0.5, 1, 2, 5, 10, 20)
PEOPLE = 10_000
WIDTH = 40


def main() -> None:
    """Print one line for each epsilon, then one guarantee in detail."""
    print("How many of 100 releases make an observer believe that you took part,")
    print("if you did not (=) and how many more if you did (#), at most:\n")
    for epsilon in EPSILONS:
        guarantee = Guarantee(epsilon=epsilon)
        with_you, without_you = odds(guarantee)
        same, more = round(WIDTH * without_you), round(WIDTH * with_you)
        bar = "=" * same + "#" * (more - same)
        print(
            f"  epsilon {epsilon:>5}  {bar:<{WIDTH}}  {100 * without_you:5.1f} "
            f"-> {100 * with_you:5.1f}  {strength(guarantee)}"
        )

    delta = advised_delta(n=PEOPLE)
    guarantee = Guarantee(epsilon=1, delta=delta)
    print(f"\nAt epsilon 1 and delta {float(delta):g}, for {PEOPLE:,} people:")
    for prior in (0.01, 0.1, 0.5):
        after = posterior(guarantee, prior=prior)
        print(f"  a belief of {prior:.0%} rises to about {after:.1%} at most")
    for k in (2, 5, 10):
        group = guarantee.group(k)
        print(f"  a family of {k} has epsilon {group.epsilon} and delta {float(group.delta):.2g}")


if __name__ == "__main__":
    main()
