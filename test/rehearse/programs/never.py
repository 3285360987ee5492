"""Never saves."""

import training

for step in training.steps(training.fresh()):
    pass
