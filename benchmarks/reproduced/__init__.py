"""Published values and the same values computed by giccs, as the page docs/background/reproduced.md."""
