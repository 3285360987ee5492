from dataclasses import dataclass


@dataclass
class Settings:
    epochs: int = 60
    batch: int = 6
    lr: float = 0.01
