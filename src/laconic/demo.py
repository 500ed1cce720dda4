"""`laconic demo`: a convolutional Tsetlin Machine learns scikit-learn's digits and shows what it learnt."""

from time import perf_counter

from rich.console import Console
from rich.progress import Progress

SHOWN = (0, 1, 7)  # digits of which a rule is shown


def demo() -> None:
    """Prints test accuracy, speed and a few rules; progress goes to stderr, and only to a terminal."""
    out, err = Console(highlight=False, soft_wrap=True), Console(stderr=True)
    with err.status("Loading and compiling (slow the first time only)"):
        from sklearn.base import clone
        from sklearn.datasets import load_digits
        from sklearn.model_selection import train_test_split

        from laconic.tsetlin.booleanize import Thermometer
        from laconic.tsetlin.estimators import TsetlinClassifier
        from laconic.tsetlin.picture import clause_text

        digits = load_digits()
        x_train, x_test, y_train, y_test = train_test_split(
            digits.images, digits.target, test_size=0.25, stratify=digits.target, random_state=0
        )
        # among the best in 4-fold cross-validation on the training part: .985; the best flat machine had .979
        classifier = TsetlinClassifier(
            n_clauses=1000, patch=(4, 4), booleanizer=Thermometer(levels=4, top=16), n_jobs=-1, random_state=0
        )
        clone(classifier).set_params(epochs=1).fit(x_train[:20], y_train[:20]).predict(x_test[:1])  # compiles

    with Progress(console=err, transient=True, disable=not err.is_terminal) as progress:
        bar = progress.add_task("Training", total=classifier.epochs)
        classifier.set_params(on_epoch=lambda _, epoch: progress.update(bar, completed=epoch))
        started = perf_counter()
        classifier.fit(x_train, y_train)
        train_seconds = perf_counter() - started

    n_epochs, n_clauses = classifier.epochs, classifier.n_clauses
    out.print(f"{len(x_train):,} images of 8 by 8 pixels, {n_epochs} epochs, {n_clauses:,} clauses per digit")
    out.print(f"trained in {train_seconds:.1f} s: {len(x_train) * n_epochs / train_seconds:,.0f} samples/s")
    out.print(f"accuracy {classifier.score(x_test, y_test):.1%} on {len(x_test)} images not trained on")
    out.print(
        "\nA few of its rules. Fuller cells want more ink, blank ones take any; on the right, where in the image the"
    )
    out.print("patch may lie. Support and precision are those on the training images.")
    sure = [rule for rule in classifier.rules_ if rule.is_for and rule.precision > 0.95]
    for digit in SHOWN:
        rule = max((rule for rule in sure if rule.label == digit), key=lambda rule: rule.support)
        out.print(f"\n{rule}", markup=False)
        out.print(clause_text(classifier.machine_, rule.bank, rule.clause), markup=False)
