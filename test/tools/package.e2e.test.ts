import { execFile } from 'node:child_process'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { pathWithout } from '../cli/process'
import { blocksOf } from '../docs/markdown'
import { testVersitygw } from '../support/s3'
import { testServer } from '../support/temporal'
import { install, pack } from '../support/package'
import { patient } from '../support/patience'
import { chosen } from '../support/selection'

const run = promisify(execFile)
const ROOT = join(__dirname, '..', '..')
/** The training, that of the example or a sixth of its work in the same time. */
const [TRAINING] = chosen(['python3 train.py'], ['python3 train.py --steps 240 --pause 0.04']) as [string]
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

/** What the compiler finds in the files of a consumer, and in those of the package, and in its settings; not in other packages. */
async function errorsOf(folder: string, outside: string): Promise<string[]> {
  const { stdout } = await run(
    process.execPath,
    [join(ROOT, 'node_modules/typescript-7/bin/tsc'), '--listFiles', '--pretty', 'false', '-p', folder],
    { cwd: outside, maxBuffer: 16 * 1024 * 1024 },
  ).catch((error: { stdout: string }) => error)
  const lines = stdout.split('\n')
  expect(lines).toContain(join(outside, 'node_modules/crucible-ml/dist/client/index.d.ts'))
  return lines.filter((line) => /^(?:(?:consumer|node_modules\/crucible-ml)\/.*: )?error TS/.test(line))
}

describe('the package', () => {
  let outside: string
  let home: string
  let packed: string[]

  beforeAll(async () => {
    outside = realpathSync(mkdtempSync(join(tmpdir(), 'crucible-package-')))
    home = join(outside, 'home')
    const { tarball, files } = await pack()
    packed = files
    await install(tarball, outside)
  }, 120_000)

  afterAll(() => rmSync(outside, { recursive: true, force: true }))

  it('holds what it needs, and no tests, sources or caches', () => {
    const needed = [
      'dist/cli/main.js',
      'dist/cli/quick-commands.js',
      'dist/cli/quick-commands.licenses.txt',
      'dist/runner/crucible-runner.pyz',
      'dist/workers/workflow-bundle.js',
      'dist/packages/small-cloud/src/index.js',
      'dist/packages/small-cloud/src/machines/programs/guard.py',
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

  it('can be imported and required, and by its documented names only', async () => {
    const { address } = testServer()
    const env = { ...process.env, CRUCIBLE_HOME: home, TEMPORAL_ADDRESS: address }
    const programs = {
      'client.mjs': `
        import * as api from 'crucible-ml'
        import { createClient, EXIT_CODES } from 'crucible-ml'
        import schema from 'crucible-ml/job.schema.json' with { type: 'json' }
        const crucible = createClient()
        const jobs = await crucible.list()
        await crucible.close()
        const refused = await import('crucible-ml/dist/client/index.js').catch(({ code }) => code)
        const names = Object.keys(api).filter((name) => !/^(default|__esModule|module\\.exports)$/.test(name)).sort()
        console.log(JSON.stringify({ names, jobs, usage: EXIT_CODES.usage, schema: schema.type, refused }))`,
      'client.cjs': `
        const api = require('crucible-ml')
        const { createClient, EXIT_CODES } = api
        const schema = require('crucible-ml/job.schema.json')
        const refusedBy = (path) => { try { require(path) } catch ({ code }) { return code } }
        const crucible = createClient()
        crucible.list().then(async (jobs) => {
          await crucible.close()
          const refused = refusedBy('crucible-ml/dist/client/index.js')
          const names = Object.keys(api).sort()
          console.log(JSON.stringify({ names, jobs, usage: EXIT_CODES.usage, schema: schema.type, refused }))
        })`,
    }
    const answers = []
    for (const [file, text] of Object.entries(programs)) {
      writeFileSync(join(outside, file), text)
      const { stdout } = await run(process.execPath, [file], { cwd: outside, env })
      answers.push(JSON.parse(stdout) as { names: string[] })
    }
    const [imported, required] = answers
    expect(imported).toEqual(required)
    expect(imported).toEqual({
      names: expect.arrayContaining(['Crucible', 'CrucibleError', 'createClient', 'parseJobFile']),
      jobs: expect.any(Array),
      usage: 2,
      schema: 'object',
      refused: 'ERR_PACKAGE_PATH_NOT_EXPORTED',
    })
  })

  it('has types for the program of its reference, under node16 resolution', async () => {
    const page = readFileSync(join(outside, 'node_modules/crucible-ml/docs/reference/typescript.md'), 'utf8')
    const [program] = blocksOf(page, 'ts')
    const consumer = join(outside, 'consumer')
    mkdirSync(consumer)
    const required = `
      import crucible = require('crucible-ml')
      export const newest = async (): Promise<crucible.JobView | undefined> => {
        const client = crucible.createClient()
        const [job] = await client.list({ limit: 1 })
        return job && client.get(job.id)
      }`
    const wrong = `
      import { createClient } from 'crucible-ml'
      import { createClient as deep } from 'crucible-ml/dist/client/index.js'
      export const wrong = [deep, createClient().get(1)]`
    writeFileSync(join(consumer, 'esm.mts'), program!.text)
    writeFileSync(join(consumer, 'commonjs.cts'), required)
    writeFileSync(join(consumer, 'wrong.mts'), wrong)
    // What the package declares is checked too: a type that cannot be resolved would silently be `any`.
    const settings = {
      module: 'node16',
      target: 'es2022',
      lib: ['es2022', 'esnext.disposable'],
      types: ['node'],
    }
    writeFileSync(
      join(consumer, 'tsconfig.json'),
      JSON.stringify({ compilerOptions: { ...settings, strict: true, declaration: true, noEmit: true } }),
    )
    expect(await errorsOf(consumer, outside)).toEqual([
      expect.stringMatching(
        /^consumer\/wrong\.mts\(3,\d+\): error TS2307: Cannot find module 'crucible-ml\/dist/,
      ),
      expect.stringMatching(/^consumer\/wrong\.mts\(4,\d+\): error TS2345: /),
    ])
  }, 120_000)

  it('lists jobs outside of the repository', async () => {
    const main = join(outside, 'node_modules/crucible-ml/dist/cli/main.js')
    const { address } = testServer()
    const env = { ...process.env, CRUCIBLE_HOME: home, TEMPORAL_ADDRESS: address }
    const answer: unknown = await run(process.execPath, [main, 'list', '--json'], {
      cwd: outside,
      env,
    }).catch((error: unknown) => error)
    // No worker has made a store yet, and reading makes none.
    expect(answer).toMatchObject({ code: 7, stdout: expect.stringContaining('is missing') })
    const { stdout } = answer as { stdout: string }
    expect(JSON.parse(stdout)).toMatchObject({ schema: 'crucible/1', jobs: expect.any(Array) })
  })

  it(
    'shows its demo outside of the repository: two machines lost, the same weights, nothing left',
    async () => {
      const job = join(outside, 'node_modules/crucible-ml/examples/char-lm/job.yaml')
      writeFileSync(job, readFileSync(job, 'utf8').replace(/^run: python3 train\.py$/m, `run: ${TRAINING}`))
      const main = join(outside, 'node_modules/crucible-ml/dist/cli/main.js')
      // In surroundings that others have: new files closed to everybody else, a proxy that does not answer, and no `ps`.
      const { stdout } = await run(
        'sh',
        ['-c', 'umask 077; exec "$@"', 'sh', process.execPath, main, 'demo', '--json'],
        {
          cwd: outside,
          env: {
            ...process.env,
            PATH: pathWithout('ps', outside),
            http_proxy: 'http://127.0.0.1:9',
            https_proxy: 'http://127.0.0.1:9',
            no_proxy: 'example.com',
            CRUCIBLE_HOME: home,
            CRUCIBLE_TEMPORAL_CLI: testServer().executable.path,
            CRUCIBLE_VERSITYGW: await testVersitygw(),
            TMPDIR: outside,
          },
          timeout: patient(DEMO_LIMIT_MS),
          maxBuffer: 64 * 1024 * 1024,
        },
      )
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
