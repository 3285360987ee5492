import keras
import numpy as np
from keras import layers

VOCABULARY, LENGTH = 10_000, 120


class TransformerBlock(layers.Layer):
    def __init__(self, width, heads, inner, rate=0.1):
        super().__init__()
        self.attention = layers.MultiHeadAttention(num_heads=heads, key_dim=width // heads)
        self.feed_forward = keras.Sequential([layers.Dense(inner, activation="relu"), layers.Dense(width)])
        self.norm1 = layers.LayerNormalization(epsilon=1e-6)
        self.norm2 = layers.LayerNormalization(epsilon=1e-6)
        self.dropout1 = layers.Dropout(rate)
        self.dropout2 = layers.Dropout(rate)

    def call(self, x):
        x = self.norm1(x + self.dropout1(self.attention(x, x)))
        return self.norm2(x + self.dropout2(self.feed_forward(x)))


inputs = layers.Input(shape=(LENGTH,), dtype="int32")
x = layers.Embedding(VOCABULARY, 128)(inputs)
x = TransformerBlock(128, 4, 512)(x)
x = TransformerBlock(128, 4, 512)(x)
x = layers.GlobalAveragePooling1D()(x)
x = layers.Dense(64, activation="relu")(x)
outputs = layers.Dense(1, activation="sigmoid")(x)
model = keras.Model(inputs=inputs, outputs=outputs)
model.compile(optimizer="adam", loss="binary_crossentropy")
texts = np.random.randint(0, VOCABULARY, (320, LENGTH))
labels = np.random.randint(0, 2, (320, 1))
model.fit(texts, labels, batch_size=32, epochs=5)
