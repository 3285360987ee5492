import { spawn } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { itInAll } from '../support/selection'

const ROOT = join(__dirname, '..', '..')
/** What a backend, its contract test and its line in the registry need. */
const COPIED = [
  'backends',
  'core',
  'intake',
  'storage',
  'docs/order.json',
  'docs/reference',
  // The contract sends and settles orders as the product does.
  'activities',
  'planner',
  ...['contract', 'deeds', 'hand-over-contract', 'offers-contract', 'harness', 'orders'].map(
    (name) => `test/backends/${name}.ts`,
  ),
  ...['until', 'patience', 'marked-store'].map((name) => `test/support/${name}.ts`),
  'tools/import-law.json',
  'tools/kept-promises.js',
  'tools/backend-skeleton',
  'tools/new-backend.mjs',
  'package.json',
  'tsconfig.json',
  'eslint.config.mjs',
  '.prettierrc.json',
]
/** Not in this tree, where every page that is named must exist. */
const PAGE = join('docs', 'reference', 'nimbus.md')
const CHECK_LIMIT_MS = 240_000

interface Finished {
  code: number | null
  output: string
}

let copy: string

function node(...args: string[]): Promise<Finished> {
  const child = spawn(process.execPath, args, { cwd: copy })
  let output = ''
  child.stdout.on('data', (data: Buffer) => (output += data.toString()))
  child.stderr.on('data', (data: Buffer) => (output += data.toString()))
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, output })))
}

const bin = (path: string): string => join(ROOT, 'node_modules', path)
const textOf = (path: string): string => readFileSync(join(copy, path), 'utf8')
const newBackend = (...args: string[]): Promise<Finished> => node('tools/new-backend.mjs', ...args)
const filesOf = (folder: string): string[] =>
  readdirSync(join(copy, folder)).map((name) => `${folder}/${name}`)

/** Every file of the copy with its text. */
function everything(): Map<string, string> {
  return new Map(
    readdirSync(copy, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && !entry.parentPath.includes('node_modules'))
      .map((entry) => join(entry.parentPath, entry.name))
      .map((path) => [path, readFileSync(path, 'utf8')]),
  )
}

beforeAll(() => {
  copy = realpathSync(mkdtempSync(join(tmpdir(), 'crucible-new-backend-')))
  for (const path of COPIED) cpSync(join(ROOT, path), join(copy, path), { recursive: true })
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'))
})

afterAll(() => rmSync(copy, { recursive: true, force: true }))

describe('npm run new-backend', () => {
  it.each([
    [[], /^The name is missing\. Write 2 to 20 of a-z and 0-9/],
    [['Nimbus'], /^"Nimbus" is not a name for a backend\. Write/],
    [['../core'], /^"\.\.\/core" is not a name for a backend\. Write/],
    [['nimbus-labs'], /^"nimbus-labs" is not a name for a backend\. Write/],
    [['spot'], /^"spot" has another meaning here/],
    [['local'], /^backends\/local exists; nothing was written/],
    [['errors'], /^backends\/errors\.ts exists; nothing was written/],
  ])('refuses %j and writes nothing', async (args, complaint) => {
    const before = everything()
    expect(await newBackend(...args)).toEqual({ code: 2, output: expect.stringMatching(complaint) })
    expect(everything()).toEqual(before)
  })

  it('refuses a tree in which it cannot register the backend, and writes nothing', async () => {
    const registry = textOf('backends/registry.ts')
    writeFileSync(
      join(copy, 'backends/registry.ts'),
      registry.replace('/** Sets up an account', '/** Makes one'),
    )
    const before = everything()
    expect(await newBackend('nimbus')).toEqual({
      code: 2,
      output: expect.stringContaining('registry.ts has no end'),
    })
    expect(everything()).toEqual(before)
    writeFileSync(join(copy, 'backends/registry.ts'), registry)
  })

  describe('for nimbus', () => {
    let answer: Finished
    beforeAll(async () => {
      answer = await newBackend('nimbus')
    })

    it('names each file that it wrote, and the next steps', () => {
      expect(answer.code).toBe(0)
      const named = [...answer.output.matchAll(/^ {2}(\S+\.\w+)$/gm)].map(([, path]) => path!)
      expect(named).toEqual(
        expect.arrayContaining([
          ...filesOf('backends/nimbus'),
          ...filesOf('test/backends/nimbus'),
          'test/backends/nimbus.contract.test.ts',
          PAGE,
          'backends/registry.ts',
        ]),
      )
      expect(named.filter((path) => !existsSync(join(copy, path)))).toEqual([])
      expect(named.filter((path) => /__name__/i.test(path) || /__name__/i.test(textOf(path)))).toEqual([])
      expect(answer.output).toContain('docs/design/adding-a-backend.md')
    })

    it('adds its settings and its page to the documentation', () => {
      expect(textOf('docs/reference/configuration.md')).toMatch(/^\| `CRUCIBLE_NIMBUS_ENDPOINT` \|/m)
      const order = JSON.parse(textOf('docs/order.json')) as Record<string, string[]>
      expect(order['Reference']).toContain(PAGE)
    })

    it('does not write over it when it is asked again', async () => {
      writeFileSync(join(copy, 'backends/nimbus/launch.ts'), '// filled in\n')
      const before = everything()
      expect(await newBackend('nimbus')).toEqual({
        code: 2,
        output: expect.stringContaining('nimbus exists'),
      })
      expect(everything()).toEqual(before)
      rmSync(join(copy, 'backends/nimbus'), { recursive: true })
      expect(await newBackend('nimbus')).toEqual({ code: 2, output: expect.stringContaining('exists') })
      for (const path of ['test/backends/nimbus', 'test/backends/nimbus.contract.test.ts', PAGE])
        rmSync(join(copy, path), { recursive: true })
      for (const path of ['backends/registry.ts', 'docs/order.json', 'docs/reference/configuration.md'])
        cpSync(join(ROOT, path), join(copy, path))
      expect(await newBackend('nimbus')).toMatchObject({ code: 0 })
    })

    itInAll(
      'compiles, with its contract test',
      async () => {
        const files = ['test/backends/nimbus.contract.test.ts']
        writeFileSync(
          join(copy, 'tsconfig.contract.json'),
          JSON.stringify({ extends: './tsconfig.json', files, include: [] }),
        )
        expect(await node(bin('typescript-7/bin/tsc'), '--noEmit', '-p', 'tsconfig.contract.json')).toEqual({
          code: 0,
          output: '',
        })
      },
      CHECK_LIMIT_MS,
    )

    itInAll(
      'compiles with the registry, and passes the linter',
      async () => {
        expect(await node(bin('typescript-7/bin/tsc'), '--noEmit', '-p', '.')).toEqual({
          code: 0,
          output: '',
        })
        const files = ['backends/nimbus', 'test/backends/nimbus', 'test/backends/nimbus.contract.test.ts']
        const eslint = await node(
          bin('eslint/bin/eslint.js'),
          '--max-warnings',
          '0',
          ...files,
          'backends/registry.ts',
        )
        expect(eslint).toEqual({ code: 0, output: '' })
        const prettier = await node(
          bin('prettier/bin/prettier.cjs'),
          '--check',
          ...files,
          'backends/registry.ts',
        )
        expect(prettier).toMatchObject({ code: 0 })
      },
      CHECK_LIMIT_MS,
    )

    it(
      'keeps no promise of the contract until it is filled in, and says where',
      async () => {
        const swc = [bin('@swc/jest'), { jsc: { target: 'es2022', parser: { syntax: 'typescript' } } }]
        const config = { rootDir: copy, testEnvironment: 'node', transform: { '\\.ts$': swc } }
        const file = 'test/backends/nimbus.contract.test.ts'
        const args = [
          '--config',
          JSON.stringify(config),
          '--runTestsByPath',
          file,
          '--json',
          '--outputFile',
          'results.json',
        ]
        expect((await node(bin('jest/bin/jest.js'), ...args)).code).toBe(1)
        const { testResults } = JSON.parse(textOf('results.json')) as {
          testResults: { assertionResults: { title: string; status: string; failureMessages: string[] }[] }[]
        }
        const results = testResults.flatMap(({ assertionResults }) => assertionResults)
        // What a backend may leave out is skipped by name.
        const required = results.filter(({ status }) => status !== 'pending')
        expect(results.filter(({ status }) => status === 'pending').map(({ title }) => title)).toEqual([
          'is deleted by the machine that reads it; then nothing that the provider keeps opens anything (its machines get their keys by another way)',
          'is all that a machine needs: one that finds it gone does nothing (its machines get their keys by another way)',
          'is taken by no second machine of its send (its machines get their keys by another way)',
          'is gone once the attempt is settled, also where no machine has read it (its machines get their keys by another way)',
          'waits for the machine, and repeating it is harmless (its launch starts the runner)',
          'shows a launch that waits as queued, free of charge, until it begins (it has no queue)',
          'ends a launch that waits, which then never begins (it has no queue)',
          'can be read to their end (it keeps no logs)',
          'takes a machine back at once (it cannot take a machine back)',
          'takes a machine back when its notice has run out (it cannot take a machine back)',
        ])
        expect(required.length).toBeGreaterThan(25)
        const isNamed = (message: string): boolean => /fill in .*\bbackends\/nimbus\//.test(message)
        const strays = required.filter(
          ({ status, failureMessages }) => status !== 'failed' || !failureMessages.some(isNamed),
        )
        expect(
          strays.map(({ title, status, failureMessages }) => ({ title, status, failureMessages })),
        ).toEqual([])
      },
      CHECK_LIMIT_MS,
    )
  })
})
