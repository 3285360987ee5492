import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { patient } from '../support/patience'

const INSTALL_LIMIT_MS = patient(20 * 60_000)
/** PyTorch's own wheels for processors without a GPU, which its documentation names. */
const CPU_WHEELS = 'https://download.pytorch.org/whl/cpu'
/** Of Debian, which has no newer one: the newest versions of the others that work with it. */
const DEBIAN_PYTHON = '/usr/bin/python3'
const BESIDE_DEBIAN_TORCH: Readonly<Record<string, string>> = {
  lightning: 'pytorch-lightning==2.1.4',
  transformers: 'transformers==4.41.2',
  accelerate: 'accelerate==0.30.1',
}

/** The libraries of `habits --real` and `resumes`, by the environment that they share, as PyPI names them. */
const LIBRARIES = {
  torch: ['torch', 'lightning', 'transformers', 'accelerate', 'click'],
  plain: ['jax', 'flax', 'orbax-checkpoint', 'keras', 'scikit-learn', 'xgboost-cpu', 'lightgbm'],
} as const

export type EnvironmentName = keyof typeof LIBRARIES

/** A Python with libraries, or why it lacks one. */
export interface Environment {
  python: string
  /** Version of each library that is there. */
  versions: Readonly<Record<string, string>>
  /** Why the others are not. */
  missing: Readonly<Record<string, string>>
}

export interface EnvironmentOptions {
  /** Crucible's home: the environments are in its cache. */
  home: string
  /** Takes PyTorch from PyPI where its own server does not answer: on Linux that is some 5 GB with all of CUDA. */
  isCudaTorchAllowed: boolean
  say: (words: string) => void
}

/** Makes the environment where it is missing; what cannot be installed is named with the reason. */
export function getEnvironment(name: EnvironmentName, options: EnvironmentOptions): Environment {
  const text = JSON.stringify([LIBRARIES[name], BESIDE_DEBIAN_TORCH, options.isCudaTorchAllowed])
  const digest = createHash('sha256').update(text).digest('hex').slice(0, 16)
  const folder = join(options.home, 'cache', 'habits', `${name}-${digest}`)
  const python = join(folder, 'bin', 'python3')
  const whole = join(folder, 'complete')
  const missing: Record<string, string> = {}
  if (!existsSync(whole)) {
    options.say(`Installing ${LIBRARIES[name].join(', ')}: some minutes the first time`)
    rmSync(folder, { recursive: true, force: true })
    mkdirSync(join(folder, '..'), { recursive: true })
    const beside = name === 'torch' ? makeForTorch(folder, options) : make(folder, [])
    for (const library of LIBRARIES[name]) {
      if (library === 'torch') continue
      const reason = pip(
        python,
        beside?.[library] === undefined ? [library] : [beside[library], ...beside['all']!.split(' ')],
      )
      if (reason !== undefined) missing[library] = reason
    }
    writeFileSync(whole, JSON.stringify(missing))
  }
  return describe(python, LIBRARIES[name], missing)
}

/** Answers which versions go with the PyTorch that was found, where not the newest do. */
function makeForTorch(
  folder: string,
  { isCudaTorchAllowed, say }: EnvironmentOptions,
): Readonly<Record<string, string>> | undefined {
  const python = join(folder, 'bin', 'python3')
  make(folder, [])
  if (pip(python, ['torch', 'numpy', '--index-url', CPU_WHEELS]) === undefined) return undefined
  // PyPI's wheels hold CUDA on Linux only.
  const isCuda = process.platform === 'linux'
  if ((!isCuda || isCudaTorchAllowed) && pip(python, ['torch', 'numpy']) === undefined) return undefined
  const found = spawnSync(DEBIAN_PYTHON, ['-c', 'import torch; print(torch.__version__.split("+")[0])'], {
    encoding: 'utf8',
  })
  if (found.status !== 0) {
    say(`PyTorch cannot be installed: ${CPU_WHEELS} does not answer, and Debian's python3-torch is not there`)
    return undefined
  }
  make(folder, ['--system-site-packages'], DEBIAN_PYTHON)
  const constraints = `${folder}.txt`
  writeFileSync(constraints, `torch==${found.stdout.trim()}\nnumpy<1.25\n`)
  return { ...BESIDE_DEBIAN_TORCH, all: `--constraint ${constraints}` }
}

function make(
  folder: string,
  args: readonly string[],
  python = process.env['CRUCIBLE_TEST_PYTHON'] ?? 'python3',
): undefined {
  rmSync(folder, { recursive: true, force: true })
  execFileSync(python, ['-m', 'venv', ...args, folder], { stdio: 'ignore' })
}

/** Installs; answers why it could not, in one line. */
function pip(python: string, args: readonly string[]): string | undefined {
  const command = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', ...args]
  const { status, stderr, error } = spawnSync(python, command, {
    encoding: 'utf8',
    timeout: INSTALL_LIMIT_MS,
  })
  if (status === 0) return undefined
  const lines = (stderr ?? '').split('\n').filter((line) => line.startsWith('ERROR'))
  return (lines.at(-1) ?? error?.message ?? `pip ended with ${status}`).slice(0, 200)
}

function describe(
  python: string,
  libraries: readonly string[],
  missing: Record<string, string>,
): Environment {
  const script = `
import importlib.metadata as metadata, json, sys
found = {}
for name in sys.argv[1:]:
    for each in (name, "pytorch-" + name):
        try:
            found[name] = metadata.version(each)
            break
        except metadata.PackageNotFoundError:
            pass
print(json.dumps(found))`
  const versions = JSON.parse(
    execFileSync(python, ['-c', script, ...libraries], { encoding: 'utf8' }),
  ) as Record<string, string>
  for (const library of libraries)
    if (versions[library] === undefined) missing[library] ??= 'it is not installed'
  return { python, versions, missing }
}
