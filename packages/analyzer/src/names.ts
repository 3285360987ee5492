/** Names of libraries. */

/** Libraries that are known under several names. */
const CANONICAL: readonly (readonly [string, string])[] = [
  ['pytorch_lightning.', 'lightning.'],
  ['lightning.pytorch.', 'lightning.'],
  ['lightning.trainer.trainer.', 'lightning.'],
  ['lightning.trainer.', 'lightning.'],
  ['lightning_fabric.', 'lightning.fabric.'],
  ['tensorflow.keras.', 'keras.'],
  ['tensorflow.python.keras.', 'keras.'],
  ['tf_keras.', 'keras.'],
]

/** A dotted name with the library's usual name. */
export function canonicalName(name: string): string {
  let usual = name
  // In this order, because a module of Lightning has several names.
  for (const [alias, short] of CANONICAL)
    if (usual.startsWith(alias)) usual = `${short}${usual.slice(alias.length)}`
  return usual
}

/** Packages whose calls this analysis knows. It does not read their source, which a fork contains. */
export const MODELLED: ReadonlySet<string> = new Set([
  'accelerate',
  'catboost',
  'deepspeed',
  'diffusers',
  'equinox',
  'flax',
  'haiku',
  'jax',
  'keras',
  'lightgbm',
  'lightning',
  'lightning_fabric',
  'megatron',
  'optax',
  'orbax',
  'peft',
  'pytorch_lightning',
  'sentence_transformers',
  'sklearn',
  'stable_baselines3',
  'tensorflow',
  'tf_keras',
  'timm',
  'torch',
  'torchaudio',
  'torchtune',
  'torchvision',
  'transformers',
  'trl',
  'xgboost',
])
