/** What the derivatives of PyTorch's operations need of the forward pass (tools/autograd/derivatives.yaml). */

/** Operations whose result is not what the next layer gets. */
export const SIDE_RESULTS = new Set(['CrossEntropyLoss', 'MSELoss', 'Softmax', 'split', 'chunk'])

/** The kinds of operations of functions. */
export const FUNCTIONS: Readonly<Record<string, string>> = {
  relu: 'ReLU',
  relu_: 'ReLU',
  leaky_relu: 'GELU',
  gelu: 'GELU',
  silu: 'GELU',
  hardswish: 'GELU',
  mish: 'GELU',
  elu: 'GELU',
  tanh: 'Tanh',
  sigmoid: 'Tanh',
  softmax: 'Softmax',
  log_softmax: 'CrossEntropyLoss',
  cross_entropy: 'CrossEntropyLoss',
  mse_loss: 'MSELoss',
  dropout: 'Dropout',
  max_pool2d: 'max_pool2d',
  avg_pool2d: 'avg_pool2d',
  adaptive_avg_pool2d: 'adaptive_avg_pool2d',
  interpolate: 'interpolate',
  flatten: 'flatten',
  transpose: 'transpose',
  permute: 'permute',
  split: 'split',
  chunk: 'chunk',
  view: 'view',
  reshape: 'view',
  mean: 'mean',
  cat: 'cat',
}

/** What each kind of operation keeps for its derivative. */
export const KEEPS: Readonly<
  Record<string, 'input' | 'output' | 'loss' | 'mask' | 'places' | 'indices' | 'block'>
> = {
  ...Object.fromEntries(
    [
      ...['Linear', 'Conv1d', 'Conv2d', 'Conv3d', 'ConvTranspose1d', 'ConvTranspose2d', 'ConvTranspose3d'],
      ...['BatchNorm1d', 'BatchNorm2d', 'BatchNorm3d', 'LayerNorm', 'GroupNorm', 'RMSNorm', 'InstanceNorm2d'],
      ...['GELU', 'SiLU', 'ELU', 'LeakyReLU', 'Mish', 'Hardswish', 'AvgPool2d', 'avg_pool2d', 'MSELoss'],
    ].map((name) => [name, 'input' as const]),
  ),
  ReLU: 'output',
  ReLU6: 'output',
  Tanh: 'output',
  Sigmoid: 'output',
  Softmax: 'output',
  LogSoftmax: 'loss',
  CrossEntropyLoss: 'loss',
  Dropout: 'mask',
  Dropout2d: 'mask',
  MaxPool1d: 'places',
  MaxPool2d: 'places',
  max_pool2d: 'places',
  Embedding: 'indices',
  LSTM: 'block',
  GRU: 'block',
  RNN: 'block',
  MultiheadAttention: 'block',
  TransformerEncoderLayer: 'block',
  TransformerEncoder: 'block',
  TransformerDecoderLayer: 'block',
  TransformerDecoder: 'block',
  Transformer: 'block',
}
