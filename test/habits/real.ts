import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Environment, EnvironmentName } from './environments'
import type { Habit } from './habits'
import type { Program } from './life'

/** A real library's way of saving: `real/NAME.py`. */
export interface RealHabit extends Habit {
  environment: EnvironmentName
  /** What it needs, as PyPI names it. */
  libraries: readonly string[]
  /** Loads it: what cannot be loaded cannot be tried. */
  check: string
}

/** A real library takes seconds to load, and saves with a processor that others use, too. */
const REAL = { saveMs: 500, settleMs: 4_000 }

/** Under its new name or its old one. */
const LIGHTNING = `
try:
    import lightning.pytorch
except ModuleNotFoundError:
    import pytorch_lightning`

export const REAL_HABITS: readonly RealHabit[] = [
  { ...REAL, name: 'pytorch', environment: 'torch', libraries: ['torch'], check: 'import torch' },
  {
    ...REAL,
    name: 'torch_distributed',
    environment: 'torch',
    libraries: ['torch'],
    check: 'import torch.distributed.checkpoint',
  },
  { ...REAL, name: 'lightning', environment: 'torch', libraries: ['torch', 'lightning'], check: LIGHTNING },
  {
    ...REAL,
    name: 'transformers_trainer',
    environment: 'torch',
    libraries: ['torch', 'transformers', 'accelerate'],
    check: 'from transformers import Trainer',
  },
  {
    ...REAL,
    name: 'lightning_best',
    environment: 'torch',
    libraries: ['torch', 'lightning'],
    check: LIGHTNING,
  },
  {
    ...REAL,
    name: 'transformers_best',
    environment: 'torch',
    libraries: ['torch', 'transformers', 'accelerate'],
    check: 'from transformers import Trainer',
  },
  {
    ...REAL,
    name: 'accelerate_states',
    environment: 'torch',
    libraries: ['torch', 'accelerate'],
    check: 'import accelerate',
  },
  { ...REAL, name: 'keras_backup', environment: 'plain', libraries: ['keras', 'jax'], check: 'import keras' },
  {
    ...REAL,
    name: 'flax_orbax',
    environment: 'plain',
    libraries: ['jax', 'flax', 'orbax-checkpoint'],
    check: 'import flax.linen, orbax.checkpoint',
  },
  {
    ...REAL,
    name: 'sklearn_joblib',
    environment: 'plain',
    libraries: ['scikit-learn'],
    check: 'import sklearn.neural_network',
  },
  {
    ...REAL,
    name: 'xgboost_callback',
    environment: 'plain',
    libraries: ['xgboost-cpu'],
    check: 'import xgboost',
  },
  {
    ...REAL,
    name: 'lightgbm_snapshot',
    environment: 'plain',
    libraries: ['lightgbm'],
    check: 'import lightgbm',
  },
]

/** Several lives share the processors, and a GPU would only be in the way. */
const ENVIRONMENT = {
  OMP_NUM_THREADS: '1',
  KERAS_BACKEND: 'jax',
  JAX_PLATFORMS: 'cpu',
  TOKENIZERS_PARALLELISM: 'false',
}

export function realProgram({ name }: Habit, { python }: Environment): Program {
  return {
    files: {
      'train.py': readFileSync(join(__dirname, 'real', `${name}.py`), 'utf8'),
      'witness.py': readFileSync(join(__dirname, 'programs', 'witness.py'), 'utf8'),
    },
    run: `exec ${python} -B train.py`,
    env: ENVIRONMENT,
  }
}

/** Why a habit cannot be tried here, if it cannot: a library is not there, or it does not work with another one. */
export function obstacleOf(
  { libraries, check }: RealHabit,
  { python, missing }: Environment,
): string | undefined {
  for (const library of libraries) {
    if (missing[library] !== undefined) return `${library} is missing: ${missing[library]}`
  }
  const { status, stderr } = spawnSync(python, ['-c', check], {
    encoding: 'utf8',
    env: { ...process.env, ...ENVIRONMENT },
  })
  if (status === 0) return undefined
  return `it cannot be loaded: ${stderr.trim().split('\n').at(-1)!.slice(0, 160)}`
}

/** `torch 2.9.0, lightning 2.5`: what was tried. */
export function versionsOf({ libraries }: RealHabit, { versions }: Environment): string {
  return libraries.map((library) => `${library} ${versions[library] ?? '?'}`).join(', ')
}
