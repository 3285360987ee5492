class Settings:
    lr = 1e-3
    rounds_of_fit = 12
    load_from = None

    def update(self, given):
        for key, value in given.items():
            setattr(self, key, value)

    def data(self):
        return [([0.0], [0.0])]


settings = Settings()
