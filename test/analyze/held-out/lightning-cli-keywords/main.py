from lightning.pytorch.cli import LightningCLI

from keywords.data import SpeechCommandsData
from keywords.model import KeywordNet

if __name__ == "__main__":
    LightningCLI(KeywordNet, SpeechCommandsData, seed_everything_default=7, save_config_kwargs={"overwrite": True})
