from tensorflow import keras

vocab = 20000
(xt, yt), _ = keras.datasets.imdb.load_data(num_words=vocab)
xt = keras.utils.pad_sequences(xt, maxlen=200)
m = keras.Sequential([keras.layers.Embedding(vocab, 64), keras.layers.LSTM(64), keras.layers.Dense(1, "sigmoid")])
m.compile(loss="binary_crossentropy", optimizer="rmsprop")
m.fit(xt, yt, batch_size=64, epochs=2)
m.save("imdb_lstm.keras")
