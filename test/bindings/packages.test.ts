/** The Python packages as users get them: built, installed without a network, typed, and imported by every Python that is found. */
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { build as buildProgram } from '../cli/process'
import { pythonClients } from '../support/python-clients'
import { GUIDE, TYPES } from './document-snippets'

jest.setTimeout(120_000)

const ROOT = join(__dirname, '../..')
/** Folder, distribution and module of each package. */
const PACKAGES = [
  { folder: 'truffle', distribution: 'truffle-aws', file: 'truffle_aws', module: 'truffle', needs: [] },
  {
    folder: 'crucible',
    distribution: 'crucible-ml',
    file: 'crucible_ml',
    module: 'crucible',
    needs: ['truffle-aws'],
  },
]
const OLDEST_MINOR = 9
const NEWEST_MINOR = 14
const sources = PACKAGES.map(({ folder }) => join(ROOT, 'bindings/python', folder, 'src'))
/** Their calls are what type checkers of users see. */
const EXAMPLES = PACKAGES.map(({ folder }) => join(ROOT, 'bindings/python', folder, 'examples')).filter(
  existsSync,
)
const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string }

const bin = pythonClients('python-packages')

/** Prints what an installed Python knows of the packages; run without anything but the standard library and them. */
const INSPECT = `
import importlib, importlib.metadata, json, pkgutil, sys
from importlib import resources
found = {}
for name, module in (("truffle-aws", "truffle"), ("crucible-ml", "crucible")):
    package = importlib.import_module(module)
    modules = [one.name for one in pkgutil.walk_packages(package.__path__, module + ".")]
    needing = {}
    for one in modules:
        try: importlib.import_module(one)
        except ModuleNotFoundError as error: needing[one] = error.name
    try: meta = importlib.metadata.metadata(name)
    except importlib.metadata.PackageNotFoundError: meta = {}
    found[module] = {
        "version": meta.get("Version"), "python": meta.get("Requires-Python"),
        "requires": [one.split("==")[0] for one in (importlib.metadata.requires(name) or [] if meta else [])],
        "typed": (resources.files(module) / "py.typed").is_file(), "modules": sorted(modules), "needing": needing,
    }
print(json.dumps(found))
`

interface Inspected {
  version: string | null
  python: string | null
  requires: string[]
  typed: boolean
  modules: string[]
  /** Modules that cannot be imported without a library, which they name. */
  needing: Record<string, string>
}

/** The helpers of a library are modules of their own. */
const FOR_LIBRARIES = {
  'crucible.checkpoint.huggingface': 'transformers',
  'crucible.checkpoint.keras': 'keras',
  'crucible.checkpoint.lightning': 'pytorch_lightning',
  'crucible.checkpoint.pytorch': 'torch',
}

function inspect(python: string, path?: string): Record<string, Inspected> {
  const stdout = execFileSync(python, [...(path === undefined ? ['-I'] : ['-s']), '-B', '-c', INSPECT], {
    encoding: 'utf8',
    env: path !== undefined ? { ...process.env, PYTHONPATH: path } : undefined,
  })
  return JSON.parse(stdout) as Record<string, Inspected>
}

/** Interpreters of the supported versions, oldest first, one of each version. */
function interpreters(): { minor: number; path: string }[] {
  const pyenv = join(process.env['PYENV_ROOT'] ?? join(homedir(), '.pyenv'), 'versions')
  const folders = existsSync(pyenv) ? readdirSync(pyenv).sort() : []
  const minors = Array.from({ length: NEWEST_MINOR - OLDEST_MINOR + 1 }, (_, index) => OLDEST_MINOR + index)
  return minors.flatMap((minor) => {
    const candidates = [
      ...folders
        .filter((name) => name.startsWith(`3.${minor}.`))
        .map((name) => join(pyenv, name, 'bin/python3')),
      `python3.${minor}`,
      'python3',
    ]
    const ask = 'import sys; print("%d.%d" % sys.version_info[:2])'
    const path = candidates.find(
      (one) => spawnSync(one, ['-c', ask], { encoding: 'utf8' }).stdout?.trim() === `3.${minor}`,
    )
    return path === undefined ? [] : [{ minor, path }]
  })
}

describe('the Python packages', () => {
  it.each(PACKAGES)('$distribution has the version of package.json', ({ folder, needs }) => {
    const text = readFileSync(join(ROOT, 'bindings/python', folder, 'pyproject.toml'), 'utf8')
    expect(/^version = "(.*)"$/m.exec(text)?.[1]).toBe(version)
    for (const other of needs) expect(text).toContain(`dependencies = ["${other}==${version}"]`)
  })
})

const tools = bin === undefined ? describe.skip : describe
tools('the Python packages, built', () => {
  const folder = mkdtempSync(join(tmpdir(), 'python-packages-'))
  const python = join(bin ?? '', 'python3')
  const site = (): string => {
    const library = join(folder, 'clean/lib')
    return join(library, readdirSync(library)[0]!, 'site-packages')
  }

  beforeAll(() => {
    buildProgram()
    for (const one of PACKAGES)
      execFileSync(
        python,
        [
          '-m',
          'build',
          '--no-isolation',
          '--outdir',
          join(folder, 'wheels'),
          join(ROOT, 'bindings/python', one.folder),
        ],
        { stdio: 'pipe' },
      )
    execFileSync(python, ['-m', 'venv', '--without-pip', join(folder, 'clean')])
    const pip = [
      '-m',
      'pip',
      '--python',
      join(folder, 'clean/bin/python3'),
      'install',
      '--no-index',
      '--quiet',
    ]
    execFileSync(python, [...pip, '--find-links', join(folder, 'wheels'), 'crucible-ml'])
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it('are a wheel and a source archive each', () => {
    expect(readdirSync(join(folder, 'wheels')).sort()).toEqual(
      PACKAGES.flatMap(({ file }) => [
        `${file}-${version}-py3-none-any.whl`,
        `${file}-${version}.tar.gz`,
      ]).sort(),
    )
  })

  it('need the standard library only, are typed, and carry their version', () => {
    const found = inspect(join(folder, 'clean/bin/python3'))
    for (const { module, needs } of PACKAGES)
      expect(found[module]).toMatchObject({ version, python: '>=3.9', requires: needs, typed: true })
    expect(found['truffle']!.needing).toEqual({})
    expect(found['crucible']!.needing).toEqual(FOR_LIBRARIES)
    const installed = readdirSync(site()).filter((name) => name.endsWith('.dist-info'))
    expect(installed.sort()).toEqual(PACKAGES.map(({ file }) => `${file}-${version}.dist-info`).sort())
  })

  it('carry the license', () => {
    for (const { file } of PACKAGES) {
      const carried = join(site(), `${file}-${version}.dist-info/licenses/LICENSE`)
      expect(readFileSync(carried, 'utf8')).toBe(readFileSync(join(ROOT, 'LICENSE'), 'utf8'))
    }
  })

  it('find the command line and ask it', () => {
    const environment = {
      ...process.env,
      CRUCIBLE_CLI: `${process.execPath} ${join(ROOT, 'dist/cli/main.js')}`,
    }
    const program =
      'from truffle import Truffle; print(Truffle().version(), Truffle().list(accelerators=True)[0])'
    const stdout = execFileSync(join(folder, 'clean/bin/python3'), ['-I', '-B', '-c', program], {
      encoding: 'utf8',
      env: environment,
    })
    expect(stdout).toMatch(new RegExp(`^${version} Accelerator\\(accelerator='`))
  })

  it('are imported, module by module, by every Python that is found', () => {
    const all = interpreters()
    expect(all).not.toEqual([])
    for (const { minor, path } of all) {
      const found = inspect(path, site())
      const { truffle, crucible } = found
      const needing = [truffle!.needing, Object.keys(crucible!.needing)]
      expect([minor, ...needing]).toEqual([minor, {}, Object.keys(FOR_LIBRARIES)])
    }
  })

  it('use nothing newer than Python 3.9', () => {
    const { stdout, status } = spawnSync(
      join(bin!, 'vermin'),
      ['--target=3.9-', '--violations', '--no-tips', '--eval-annotations', ...sources],
      { encoding: 'utf8' },
    )
    expect({ status, stdout: status === 0 ? '' : stdout }).toEqual({ status: 0, stdout: '' })
  })

  /** What mypy says of files; an empty text if nothing. */
  function mypy(files: readonly string[], ...options: string[]): string {
    const { stdout } = spawnSync(
      python,
      [
        '-m',
        'mypy',
        '--config-file=',
        '--no-error-summary',
        ...options,
        `--cache-dir=${join(bin!, '..', 'mypy-cache')}`,
        ...files,
      ],
      { encoding: 'utf8', env: { ...process.env, MYPYPATH: sources.join(delimiter) } },
    )
    return stdout
  }

  it.each([OLDEST_MINOR, NEWEST_MINOR])('pass mypy in its strictest form for Python 3.%i', (minor) => {
    expect(mypy([...sources, ...EXAMPLES], '--strict', `--python-version=3.${minor}`)).toBe('')
  })

  it('tell type checkers which rows each form of capacity() has, and that the documents are right', () => {
    const head = 'from truffle import ReservationType, Truffle\ntf = Truffle()\n'
    const forms = [
      ['tf.capacity()', 'Results[truffle.reservations.CapacityReservation]'],
      [
        'tf.capacity(["p5.48xlarge"], reservation_type=ReservationType.CAPACITY_BLOCKS)',
        'Results[truffle.reservations.CapacityBlock]',
      ],
      ['tf.capacity(offerings=True, count=3)', 'Offerings[truffle.reservations.CapacityBlockOffering]'],
      ['tf.capacity(topology=True)', 'Results[truffle.reservations.ReservationPlace]'],
    ] as const
    const documents = Object.entries({ ...GUIDE, ...TYPES }).filter(([name]) => name !== 'fullApi')
    const invented = 'def start_training() -> None: ...\ndef create_capacity_block() -> None: ...\n'
    const files = [
      [
        'forms.py',
        head + forms.map(([call]) => `reveal_type(${call})\n`).join('') + 'tf.capacity(count=3)\n',
      ],
      ...documents.map(([name, code]) => [`${name}.py`, head + invented + code]),
    ].map(([name, text]) => {
      writeFileSync(join(folder, name!), text!)
      return join(folder, name!)
    })
    const told = mypy(files, '--check-untyped-defs', '--hide-error-context')
    const lines = told
      .split('\n')
      .filter((line) => !/overload variant|: note: {5}/i.test(line) || /error/.test(line))
    expect(lines).toEqual([
      ...forms.map(([, type]) => expect.stringContaining(`Revealed type is "truffle.results.${type}"`)),
      expect.stringMatching(/forms\.py:7: error: No overload variant/),
      '',
    ])
  })

  it('tell type checkers what jobs and functions return, in both forms', () => {
    const right = `
import asyncio
from typing import Dict
from crucible import Job, MLPlatform, Requirements, Status

platform = MLPlatform()

@platform.job(gpu_memory="24GB")
def train(rate: float, steps: int = 3) -> Dict[str, float]:
    return {"loss": rate * steps}

@platform.job
def count(n: int) -> int:
    return n

loss: float = train(0.1, steps=2).result()["loss"]
here: int = count.local(3)
plain: Job[Status] = platform.submit(script="train.py", requirements=Requirements(gpus=1))

async def main() -> None:
    status: Status = await plain.wait.aio(timeout_s=3)
    number: int = await (await count.submit.aio(3)).result.aio()
    async for one in plain.monitor():
        print(one.backend_changed, status, number)
    for other in plain.monitor():
        print(other.progress)
`
    const wrong = [
      'train("a")',
      'count.submit("b")',
      'platform.submit(cod="x")',
      'plain.wait(timeout=3)',
      'Requirements(gpu_mem=3)',
    ]
    const path = join(folder, 'user.py')
    writeFileSync(path, `${right}\n${wrong.join('\n')}\n`)
    const first = right.split('\n').length + 1
    const errors = mypy([path], '--strict').matchAll(/user\.py:(\d+): error/g)
    expect([...errors].map(([, line]) => Number(line))).toEqual(wrong.map((_, index) => first + index))
  })
})
