from absl import app, flags
from ml_collections import config_flags

from glyphs import fit

WORKDIR = flags.DEFINE_string("workdir", None, "folder of the run")
CONFIG = config_flags.DEFINE_config_file("config", None, "settings")


def main(_):
    fit.fit(CONFIG.value, WORKDIR.value)


if __name__ == "__main__":
    app.run(main)
