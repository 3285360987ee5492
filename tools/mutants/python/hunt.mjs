// Finds out which mutants of the runner the tests catch: the tests of its parts, which run in Python, then those that start it as a process.
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { clearTimeout, setTimeout } from 'node:timers'
import { ROOT } from '../../content.mjs'
import { getPythonClients } from '../../python-clients.mjs'
import { Checkout } from '../checkout.mjs'

const PARTS = 'test/runner/python'
/** Tests that start the runner. */
const PROCESSES = '^.*/test/runner/(?!python|char-lm|zip)[\\w-]+\\.test\\.ts$'
/** Time that the tests of parts which run for one mutant take without it; the fastest come first. */
const PARTS_MAX_MS = 10_000
/** Number of tests which start the runner for one mutant: the fastest that reach it. */
const PROCESSES_MAX = 4
const LIMIT_MS = 60_000
const SURVEY_MAX_MS = 20 * 60_000

const isMutable = (file) => file.startsWith('runner/') && file.endsWith('.py')

async function pythonOfTools() {
  const home = process.env.CRUCIBLE_HOME ?? join(homedir(), '.crucible')
  const wanted = { name: 'python-mutants', what: 'Cosmic Ray' }
  const folder = await getPythonClients(wanted, home, (line) => console.error(line))
  if (folder === undefined) throw new Error('Cosmic Ray cannot be installed.')
  return join(folder, 'bin', 'python3')
}

/** Runs a program with a time limit; returns its exit code (null when it took too long) and its output. */
function call(program, args, { cwd, input = '', limitMs = LIMIT_MS }) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { cwd, stdio: ['pipe', 'pipe', 'pipe'], detached: true })
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text) => (output += text))
    const end = () => {
      try {
        process.kill(-child.pid, 'SIGKILL')
      } catch {
        // It has ended.
      }
    }
    const timer = setTimeout(() => {
      end()
      resolve({ code: null, output })
    }, limitMs)
    child.once('error', reject)
    child.once('exit', (code) => {
      clearTimeout(timer)
      // The streams stay open in processes that a broken runner has left behind.
      setTimeout(() => {
        end()
        resolve({ code, output })
      }, 50)
    })
    child.stdin.on('error', () => undefined).end(input)
  })
}

const MUTATE = join(ROOT, 'tools', 'mutants', 'python', 'mutate.py')
const UNIT = join(ROOT, 'tools', 'mutants', 'python', 'unit.py')
const linesOf = (text) =>
  text
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line))

/** Returns all mutants of Python files, without what they change. */
export async function pythonMutantsOf(files) {
  const chosen = files.filter(isMutable)
  if (chosen.length === 0) return []
  const { code, output } = await call(await pythonOfTools(), [MUTATE, 'list', ...chosen], {
    cwd: ROOT,
    limitMs: SURVEY_MAX_MS,
  })
  if (code !== 0) throw new Error(output)
  return linesOf(output).map((mutant) => ({ ...mutant, isPython: true }))
}

/** Adds what each mutant changes, and an id; leaves out those that are not Python. */
export async function madePythonMutants(mutants) {
  if (mutants.length === 0) return []
  const input = mutants.map((mutant) => JSON.stringify(mutant)).join('\n')
  const { code, output } = await call(await pythonOfTools(), [MUTATE, 'make'], {
    cwd: ROOT,
    input,
    limitMs: SURVEY_MAX_MS,
  })
  if (code !== 0) throw new Error(output)
  return linesOf(output).map((mutant, index) => {
    const original = readFileSync(join(ROOT, mutant.file), 'utf8')
    const end = mutant.start + mutant.before.length
    const text = original.slice(0, mutant.start) + mutant.after + original.slice(end)
    // People read whole lines.
    const from = original.lastIndexOf('\n', mutant.start - 1) + 1
    const to = (original + '\n').indexOf('\n', end)
    const before = original.slice(from, to)
    const after = text.slice(from, text.length - (original.length - to))
    return { ...mutant, id: `p${index}`, before, after, text, original }
  })
}

export class PythonHunt {
  constructor({ mutants, settled }) {
    this.mutants = mutants
    this.settled = settled
    this.checkouts = []
  }

  async run() {
    const survey = await this.survey()
    this.checkouts = Array.from({ length: availableParallelism() }, () => new Checkout([]))
    const waiting = [...this.mutants]
    await Promise.all(
      this.checkouts.map(async ({ root }) => {
        for (let mutant = waiting.shift(); mutant !== undefined; mutant = waiting.shift()) {
          writeFileSync(join(root, mutant.file), mutant.text)
          const by =
            (await this.byParts(root, mutant, survey)) ?? (await this.byProcesses(root, mutant, survey))
          writeFileSync(join(root, mutant.file), mutant.original)
          this.settled({ mutant, verdict: by === undefined ? 'survived' : 'caught', by })
        }
      }),
    )
  }

  remove() {
    for (const checkout of this.checkouts) checkout.remove()
  }

  /** Runs all tests once and notes which mutants each reaches. */
  async survey() {
    const marked = new Checkout([])
    this.checkouts.push(marked)
    const notes = mkdtempSync(join(tmpdir(), 'crucible-reached-'))
    try {
      const lines = {}
      for (const { file, line, id } of this.mutants) ((lines[file] ??= {})[line] ??= []).push(id)
      const python = await pythonOfTools()
      const folders = ['parts', 'processes'].map((name) => join(notes, name))
      folders.forEach((folder) => mkdirSync(folder))
      const mark = (folder) =>
        call(python, [MUTATE, 'mark', folder], { cwd: marked.root, input: JSON.stringify(lines) })
      await mark(folders[0])
      const parts = await call('python3', ['-B', UNIT, 'survey', PARTS], {
        cwd: marked.root,
        limitMs: SURVEY_MAX_MS,
      })
      for (const { file, original } of this.mutants) writeFileSync(join(marked.root, file), original)
      await mark(folders[1])
      const report = join(notes, 'jest.json')
      const jest = join('node_modules', '.bin', 'jest')
      const options = ['--selectProjects', 'unit', '-w', '1', '--json', `--outputFile=${report}`]
      await call(jest, [...options, '--testPathPatterns', PROCESSES], {
        cwd: marked.root,
        limitMs: SURVEY_MAX_MS,
      })
      return this.read(parts.output, report, folders)
    } finally {
      rmSync(notes, { recursive: true, force: true })
      marked.remove()
      this.checkouts = []
    }
  }

  read(output, report, [ofParts, ofProcesses]) {
    const parts = new Map(linesOf(output).map((test) => [test.name, { ...test, reached: new Set() }]))
    for (const [, id, test] of notesIn(ofParts)) parts.get(test)?.reached.add(id)
    const { testResults } = JSON.parse(readFileSync(report, 'utf8'))
    const processes = testResults.flatMap(({ name, assertionResults }) =>
      assertionResults.map(({ fullName, status, startAt, duration }) => ({
        file: name.slice(name.indexOf('test/runner/')),
        name: fullName,
        isPassed: status === 'passed',
        ms: duration ?? 0,
        startAt,
        reached: new Set(),
      })),
    )
    for (const [at, id] of notesIn(ofProcesses))
      for (const test of processes)
        if (Number(at) >= test.startAt && Number(at) <= test.startAt + test.ms) test.reached.add(id)
    const usable = (tests) => tests.filter(({ isPassed }) => isPassed).sort((one, other) => one.ms - other.ms)
    return { parts: usable([...parts.values()]), processes: usable(processes) }
  }

  async byParts(root, mutant, { parts }) {
    let ms = 0
    const reaching = parts.filter(({ reached, name }) => reached.has(mutant.id) || isLoadedBy(name, mutant))
    const names = reaching.filter((test) => (ms += test.ms) <= PARTS_MAX_MS).map(({ name }) => name)
    if (names.length === 0) return undefined
    const { code, output } = await call('python3', ['-B', UNIT, 'run', PARTS, ...names], {
      cwd: root,
      limitMs: LIMIT_MS + ms,
    })
    if (code === 0) return undefined
    return code === null ? 'the time of the tests' : output.trim().split('\n').at(-1)
  }

  async byProcesses(root, mutant, { processes }) {
    const chosen = processes.filter(({ reached }) => reached.has(mutant.id)).slice(0, PROCESSES_MAX)
    for (const file of new Set(chosen.map((test) => test.file))) {
      const names = chosen.filter((test) => test.file === file).map(({ name }) => name)
      const pattern = `^(${names.map((name) => name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|')})$`
      const options = ['--selectProjects', 'unit', '--bail', '-w', '1', '-t', pattern]
      const { code } = await call(
        join('node_modules', '.bin', 'jest'),
        [...options, '--runTestsByPath', file],
        {
          cwd: root,
          limitMs: 3 * LIMIT_MS,
        },
      )
      if (code !== 0) return `${file}: ${names.join('; ')}`
    }
    return undefined
  }
}

/** Yields the time, the id and the test of each note. */
function* notesIn(folder) {
  for (const name of readdirSync(folder))
    for (const line of readFileSync(join(folder, name), 'utf8').split('\n').filter(Boolean)) {
      const [at, id, ...test] = line.split(' ')
      yield [at, id, test.join(' ')]
    }
}

const sources = new Map()
/** Whether a mutant outside of all functions is one of a module that the test's file imports. */
function isLoadedBy(test, { file, line, original }) {
  if (/^\s/.test(original.split('\n')[line - 1])) return false
  const path = join(ROOT, PARTS, `${test.split('.')[0]}.py`)
  if (!sources.has(path)) sources.set(path, readFileSync(path, 'utf8'))
  return sources.get(path).includes(file.slice('runner/'.length, -'.py'.length).replaceAll('/', '.'))
}
