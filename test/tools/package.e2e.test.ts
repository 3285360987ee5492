import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { testVersitygw } from '../support/s3'
import { testServer } from '../support/temporal'

const ROOT = join(__dirname, '../..')
const run = promisify(execFile)
/** The demo promises a minute; a busy machine takes longer. */
const DEMO_LIMIT_MS = 240_000

interface Attempt {
  number: number
  place: string
  capacityType: string
  state: string
  reason: string
  stepsLost: number | null
}

interface DemoDocument {
  isIdentical: boolean
  left: string[]
  spot: { costMicroUsd: number }
  onDemand: { costMicroUsd: number }
  jobs: { name: string; state: string; attempts: Attempt[] }[]
}

describe('the package', () => {
  let outside: string
  let home: string
  let packed: string[]

  // Installed as npm does it, but for the dependencies, which are those of this checkout: no network.
  beforeAll(async () => {
    outside = realpathSync(mkdtempSync(join(tmpdir(), 'crucible-package-')))
    home = join(outside, 'home')
    const { stdout } = await run(
      'npm',
      ['pack', '--ignore-scripts', '--json', '--pack-destination', outside],
      {
        cwd: ROOT,
        maxBuffer: 64 * 1024 * 1024,
      },
    )
    const [{ filename, files }] = JSON.parse(stdout) as [{ filename: string; files: { path: string }[] }]
    packed = files.map(({ path }) => path)
    const modules = join(outside, 'node_modules')
    mkdirSync(join(modules, 'crucible-ml'), { recursive: true })
    await run('tar', [
      '-xzf',
      join(outside, filename),
      '--strip-components=1',
      '-C',
      join(modules, 'crucible-ml'),
    ])
    linkDependencies(modules)
  }, 120_000)

  afterAll(() => rmSync(outside, { recursive: true, force: true }))

  it('holds what it needs, and no tests, sources or caches', () => {
    const needed = [
      ...['dist/cli/main.js', 'dist/cli/quick-commands.js', 'dist/cli/quick-commands.licenses.txt'],
      ...['dist/runner/crucible-runner.pyz', 'dist/workers/workflow-bundle.js'],
      ...[
        'dist/packages/small-cloud/src/index.js',
        'dist/packages/small-cloud/src/machines/programs/guard.py',
      ],
    ]
    expect(packed).toEqual(
      expect.arrayContaining([...needed, 'examples/char-lm/job.yaml', 'docs/job.schema.json']),
    )
    expect(packed).toEqual(
      expect.arrayContaining(['README.md', 'LICENSE', 'CHANGELOG.md', 'tools/temporal/go.sum']),
    )
    const strays = packed.filter((path) =>
      /^test\/|\/test\/|__pycache__|(?<!\.d)\.ts$|\.cache$|^dist\/test/.test(path),
    )
    expect(strays).toEqual([])
  })

  it('gives types to those who import it', () => {
    const { types, main } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Record<
      string,
      string
    >
    expect(packed).toEqual(expect.arrayContaining([types, main]))
  })

  it('lists jobs outside of the repository', async () => {
    const main = join(outside, 'node_modules/crucible-ml/dist/cli/main.js')
    const { address } = testServer()
    const env = { ...process.env, CRUCIBLE_HOME: home, TEMPORAL_ADDRESS: address }
    const { stdout } = await run(process.execPath, [main, 'list', '--json'], { cwd: outside, env })
    expect(JSON.parse(stdout)).toEqual({ jobs: expect.any(Array) })
  })

  it(
    'shows its demo outside of the repository: two machines lost, the same weights, nothing left',
    async () => {
      const main = join(outside, 'node_modules/crucible-ml/dist/cli/main.js')
      const { stdout } = await run(process.execPath, [main, 'demo', '--json'], {
        cwd: outside,
        env: {
          ...process.env,
          CRUCIBLE_HOME: home,
          CRUCIBLE_TEMPORAL_CLI: testServer().executable.path,
          CRUCIBLE_VERSITYGW: await testVersitygw(),
          TMPDIR: outside,
        },
        timeout: DEMO_LIMIT_MS,
        maxBuffer: 64 * 1024 * 1024,
      })
      const { isIdentical, left, jobs, spot, onDemand } = JSON.parse(stdout) as DemoDocument
      expect({ isIdentical, left }).toEqual({ isIdentical: true, left: [] })
      const [moved, undisturbed] = jobs
      expect(moved?.attempts.map(({ state }) => state)).toEqual(['interrupted', 'interrupted', 'succeeded'])
      // With notice nothing is lost; without, what came after the last checkpoint.
      expect(moved?.attempts[0]?.stepsLost).toBe(0)
      const [first, ...others] = moved!.attempts.map(({ capacityType, place }) => `${capacityType} ${place}`)
      expect(first).toBe('spot us-east-1a')
      expect(others).toEqual(['spot us-east-1b', 'spot us-east-1b'])
      expect(undisturbed).toMatchObject({
        state: 'succeeded',
        attempts: [{ number: 1, capacityType: 'on-demand' }],
      })
      // Work done again included, spot is the cheaper way.
      expect(spot.costMicroUsd).toBeGreaterThan(0)
      expect(spot.costMicroUsd).toBeLessThan(onDemand.costMicroUsd)
      expect(readdirSync(outside).filter((name) => name.startsWith('crucible-demo-'))).toEqual([])
    },
    DEMO_LIMIT_MS,
  )
})

/** Every package that the lock has at the top, linked where Node looks for it. */
function linkDependencies(modules: string): void {
  for (const name of readdirSync(join(ROOT, 'node_modules'))) {
    // The small cloud is in the product's own dist/, not in the registry.
    if (name.startsWith('.') || name === 'crucible-small-cloud') continue
    const inner = name.startsWith('@')
      ? readdirSync(join(ROOT, 'node_modules', name)).map((each) => join(name, each))
      : [name]
    for (const each of inner) {
      mkdirSync(dirname(join(modules, each)), { recursive: true })
      symlinkSync(join(ROOT, 'node_modules', each), join(modules, each))
    }
  }
}
