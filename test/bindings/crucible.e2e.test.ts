/** The Python package `crucible` against a deployment with a small cloud. Its cases are in `crucible-live/`; one process runs them all. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import type { Connection } from '@temporalio/client'
import { build, CommandLine } from '../cli/process'
import { testFolder } from '../support/folders'
import { freshNamespace } from '../support/namespace'
import { patient } from '../support/patience'
import { pythonClients } from '../support/python-clients'
import { testVersitygw } from '../support/s3'
import { chosen } from '../support/selection'
import { connectTo, testServer } from '../support/temporal'
import { exec } from './exec'

interface Outcome {
  name: string
  failure: string | null
}

const ROOT = join(__dirname, '../..')
const LIVE = join(__dirname, 'crucible-live')
const NOTEBOOK = join(ROOT, 'examples/notebook/crucible.ipynb')
const SOURCES = ['truffle', 'crucible'].map((name) => join(ROOT, 'bindings/python', name, 'src'))
const LIMIT_MS = 300_000

/** The notebook does most of what the others do. */
const FILES = chosen(['test_document', 'test_live', 'test_pages'], ['test_document'])

/** `test_live.TestJobs.test_...` in the order of the files. */
const names = FILES.flatMap((file) => {
  const text = readFileSync(join(LIVE, `${file}.py`), 'utf8')
  const found = [...text.matchAll(/^class (\w+)|^ {4}def (test_\w+)/gm)]
  return found.flatMap(([, , test], index) => {
    const above = found.slice(0, index).findLast(([, kind]) => kind !== undefined)
    return test === undefined ? [] : [`${file}.${above![1]}.${test}`]
  })
})

let crucible: CommandLine
let environment: NodeJS.ProcessEnv

beforeAll(async () => {
  build()
  const folder = testFolder('python-crucible')
  writeFileSync(join(folder, '.crucibleignore'), 'home\n')
  const { client: temporal, close } = await connectTo()
  const own = {
    CRUCIBLE_HOME: join(folder, 'home'),
    CRUCIBLE_VERSITYGW: await testVersitygw(),
    CRUCIBLE_BACKENDS: 'local,ec2',
    CRUCIBLE_LOCAL_SPOT: 'yes',
    CRUCIBLE_LOCAL_SLOTS: '16',
    CRUCIBLE_LOCAL_PRICE: '4',
    CRUCIBLE_LOCAL_SPOT_PRICE: '1',
    TEMPORAL_ADDRESS: testServer().address,
    TEMPORAL_NAMESPACE: await freshNamespace(temporal.connection as Connection),
  }
  await close()
  crucible = new CommandLine(own, folder)
  await crucible.ready('dev', '--sim')
  environment = {
    PATH: process.env['PATH'],
    HOME: folder,
    USER: 'tester',
    ...own,
    CRUCIBLE_CLI: `${process.execPath} ${join(ROOT, 'dist/cli/main.js')}`,
    PYTHONPATH: SOURCES.join(':'),
  }
}, 180_000)

afterAll(() => crucible?.close(), 60_000)

describe('the Python package crucible, with a deployment', () => {
  const outcomes = new Map<string, string | null>()

  beforeAll(async () => {
    const python = process.env['CRUCIBLE_TEST_PYTHON'] ?? 'python3'
    const args = ['-B', '-W', 'ignore', join(ROOT, 'test/runner/python/run.py'), LIVE, ...FILES]
    const stdout = await exec(python, args, { cwd: crucible.cwd, env: environment })
    for (const line of stdout.split('\n').filter(Boolean)) {
      const { name, failure } = JSON.parse(line) as Outcome
      outcomes.set(name, failure)
    }
  }, patient(LIMIT_MS))

  it.each(names)('%s', (name) => {
    expect([...outcomes.keys()]).toContain(name)
    const failure = outcomes.get(name)
    if (failure != null) throw new Error(failure)
  })
})

const bin = pythonClients('python-packages')
const withKernel = bin === undefined ? it.skip : it
withKernel(
  'the notebook of the Python package runs from its first cell to its last',
  async () => {
    const run = `
import json, sys, nbformat, nbclient
book = nbformat.read(sys.argv[1], 4)
nbclient.NotebookClient(book, timeout=240, kernel_name="python3").execute()
print(json.dumps([cell.outputs for cell in book.cells if cell.cell_type == "code"]))
`
    const env = { ...environment, PATH: `${bin}:${environment['PATH']}` }
    const stdout = await exec(join(bin!, 'python3'), ['-c', run, NOTEBOOK], { cwd: crucible.cwd, env })
    const cells = (
      JSON.parse(stdout.trim().split('\n').at(-1)!) as { data?: Record<string, string> }[][]
    ).map((outputs) => outputs.map(({ data }) => data?.['text/html'] ?? data?.['text/plain'] ?? ''))
    const views = cells.filter((outputs) => outputs.some(Boolean))
    expect(views).toEqual([
      [expect.stringContaining('<td')],
      // One card, which has become that of the end.
      [expect.stringMatching(/succeeded[^]*step 30 of 30/)],
      [expect.stringMatching(/^\{'loss': 0\.0105\d+, 'settings': Settings\(rate=0\.2, steps=30\)\}$/)],
      [expect.stringContaining('step 30/30 loss')],
      [expect.stringContaining('succeeded')],
    ])
  },
  patient(LIMIT_MS),
)
