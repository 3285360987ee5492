/** Commands that start a program: `python`, launchers of several processes, and shell scripts that hold such a command. */
import { folderOf, joined, normal, type ProjectFiles } from './project'
import { assign, commandsOf, expanded, isAssignment, type Variables } from './shell'

/** How a program is started. */
export interface Launch {
  /** The script or notebook. */
  entry: string
  args: string[]
  launcher: 'python' | 'torchrun' | 'accelerate' | 'deepspeed'
  /** Options of the launcher, without their dashes. */
  settings: Map<string, string>
  /** Processes on one machine, if the command says so. */
  processes: number | undefined
  /** The shell script that holds the command. */
  from: { file: string; line: number; text: string } | undefined
}

const DEPTH_MAX = 4
/** Scripts that start each other, or themselves, would be read without end. */
const SCRIPTS_MAX = 50

/** The programs that a command line starts: first those whose names say that they train, then the others, the last one first. */
export function readCommands(command: string, files: ProjectFiles): Launch[] {
  return launchesOf({ text: command, file: undefined, args: [] }, { files, depth: 0, read: [] })
}

interface Script {
  text: string
  file: string | undefined
  args: readonly string[]
}

/** The scripts around a command. */
interface Around {
  files: ProjectFiles
  depth: number
  /** All scripts that were read for the command, each as often as it was. */
  read: string[]
}

function launchesOf(script: Script, around: Around): Launch[] {
  const variables: Variables = new Map()
  const launches: Launch[] = []
  for (const command of commandsOf(script.text)) {
    const all = expanded(command.words, { variables, args: script.args })
    if (command.array !== undefined) {
      assign(variables, command.array, all)
      continue
    }
    const words = withoutPrefixes(all, variables)
    const { file } = script
    const from = file === undefined ? undefined : { file, line: command.line, text: command.text }
    for (const found of programsOf(words, around)) launches.push({ ...found, from: found.from ?? from })
  }
  const trains = ({ entry }: Launch): boolean =>
    TRAINING_NAMES.some((name) => entry.toLowerCase().includes(name))
  return [...launches.filter(trains), ...launches.filter((launch) => !trains(launch)).toReversed()]
}

/** Names of the programs that train, among others that prepare data or test. */
const TRAINING_NAMES = ['train', 'finetune', 'fine_tune', 'pretrain', 'fit', 'sft']

/** Programs that start another one, with the number of words that follow them. */
const PREFIXES: Readonly<Record<string, number>> = {
  exec: 0,
  nohup: 0,
  time: 0,
  sudo: 0,
  env: 0,
  export: 0,
  poetry: 1,
  uv: 1,
  pipenv: 1,
}
/** Prefixes with their own options. */
const PREFIXES_WITH_OPTIONS = new Set([
  'srun',
  'mpirun',
  'mpiexec',
  'conda',
  'nice',
  'timeout',
  'xvfb-run',
  'stdbuf',
])

function withoutPrefixes(words: readonly string[], variables: Variables): string[] {
  let rest = [...words]
  for (;;) {
    const [first] = rest
    if (first === undefined) return rest
    const at = first.indexOf('=')
    if (isAssignment(first)) {
      assign(variables, first.slice(0, at), first.slice(at + 1))
      rest = rest.slice(1)
    } else if (PREFIXES[first] !== undefined) rest = rest.slice(1 + PREFIXES[first])
    else if (PREFIXES_WITH_OPTIONS.has(first)) {
      const program = rest.findIndex((word, index) => index > 0 && isProgram(word))
      if (program === -1) return rest
      rest = rest.slice(program)
    } else return rest
  }
}

const baseOf = (word: string): string => word.slice(word.lastIndexOf('/') + 1)
const isPython = (word: string): boolean => baseOf(word).startsWith('python')
const SHELLS = new Set(['bash', 'sh', 'zsh', 'source', '.'])
const isProgram = (word: string): boolean =>
  isPython(word) ||
  SHELLS.has(word) ||
  ['torchrun', 'accelerate', 'deepspeed', 'papermill'].includes(word) ||
  word.endsWith('.sh')

function programsOf(words: readonly string[], around: Around): Launch[] {
  const { files, depth, read } = around
  const one = (found: Launch | undefined): Launch[] => (found === undefined ? [] : [found])
  const [program = '', ...rest] = words
  if (isPython(program)) return one(pythonOf(rest, files))
  if (program === 'torchrun') return one(launcherOf('torchrun', rest, files))
  if (program === 'deepspeed') return one(launcherOf('deepspeed', rest, files))
  if (program === 'accelerate' && rest[0] === 'launch')
    return one(launcherOf('accelerate', rest.slice(1), files))
  const inline = SHELLS.has(program) ? rest.findIndex((word) => /^-[a-z]*c$/.test(word)) : -1
  if (inline !== -1 && depth < DEPTH_MAX)
    return launchesOf(
      { text: rest[inline + 1] ?? '', file: undefined, args: [] },
      { ...around, depth: depth + 1 },
    )
  const script = SHELLS.has(program) ? rest.find((word) => !word.startsWith('-')) : program
  if (script === undefined) return []
  if (script.endsWith('.py') || script.endsWith('.ipynb')) {
    const at = words.indexOf(script)
    return [launch('python', { entry: normal(script), args: words.slice(at + 1) })]
  }
  if (script.endsWith('.sh') && depth < DEPTH_MAX && read.length < SCRIPTS_MAX) {
    const text = files.read(normal(script))
    if (text === undefined) return []
    const args = words.slice(words.indexOf(script) + 1)
    read.push(script)
    return launchesOf({ text, file: normal(script), args }, { ...around, depth: depth + 1 })
  }
  const notebook = words.find((word) => word.endsWith('.ipynb'))
  return notebook === undefined ? [] : [launch('python', { entry: normal(notebook), args: [] })]
}

/** Options of Python that have a value. */
const PYTHON_OPTIONS_WITH_VALUE = new Set(['-W', '-X'])

function pythonOf(words: readonly string[], files: ProjectFiles): Launch | undefined {
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at]!
    if (word === '-m') return moduleOf(words.slice(at + 1), files)
    // The program is in the command itself.
    if (word === '-c' || word === '-' || word.startsWith('<<')) return undefined
    if (PYTHON_OPTIONS_WITH_VALUE.has(word)) at += 1
    else if (!word.startsWith('-'))
      return launch('python', { entry: normal(word), args: words.slice(at + 1) })
  }
  return undefined
}

const MODULES_OF_LAUNCHERS: Readonly<Record<string, Launch['launcher']>> = {
  'torch.distributed.run': 'torchrun',
  'torch.distributed.launch': 'torchrun',
  'accelerate.commands.launch': 'accelerate',
}

function moduleOf(words: readonly string[], files: ProjectFiles): Launch | undefined {
  const [name = '', ...args] = words
  const launcher = MODULES_OF_LAUNCHERS[name]
  if (launcher !== undefined) return launcherOf(launcher, args, files)
  const entry = fileOfModule(name, files)
  return entry === undefined ? undefined : launch('python', { entry, args })
}

function fileOfModule(name: string, files: ProjectFiles): string | undefined {
  const path = name.split('.').join('/')
  const candidates = ['', 'src'].flatMap((folder) => [
    joined(folder, `${path}.py`),
    joined(folder, `${path}/__main__.py`),
  ])
  return candidates.find((file) => files.read(file) !== undefined)
}

function launcherOf(
  launcher: Launch['launcher'],
  words: readonly string[],
  files: ProjectFiles,
): Launch | undefined {
  const settings = new Map<string, string>()
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at]!
    if (word === '-m' || word === '--module') {
      const entry = fileOfModule(words[at + 1] ?? '', files)
      return entry === undefined
        ? undefined
        : launch(launcher, { entry, args: words.slice(at + 2), settings })
    }
    if (word.endsWith('.py'))
      return launch(launcher, { entry: normal(word), args: words.slice(at + 1), settings })
    const [name = '', value] = word.split('=')
    const key = withoutDashes(name).split('-').join('_')
    const next = words[at + 1]
    const follows =
      value === undefined && next !== undefined && !next.startsWith('-') && !next.endsWith('.py')
    settings.set(key, value ?? (follows ? next : 'true'))
    if (follows) at += 1
  }
  return undefined
}

function withoutDashes(name: string): string {
  let at = 0
  while (name[at] === '-') at += 1
  return name.slice(at)
}

/** Settings that say how many processes run. */
const PROCESS_SETTINGS = ['nproc_per_node', 'num_processes', 'num_gpus']

function launch(
  launcher: Launch['launcher'],
  {
    entry,
    args,
    settings = new Map(),
  }: { entry: string; args: readonly string[]; settings?: Map<string, string> },
): Launch {
  const given = PROCESS_SETTINGS.map((name) => settings.get(name)).find((value) => value !== undefined)
  const processes = Number(given)
  return {
    entry,
    args: [...args],
    launcher,
    settings,
    processes: Number.isInteger(processes) && processes > 0 ? processes : undefined,
    from: undefined,
  }
}

/** The program to analyze in a folder: what its name and its place among the others suggest. */
export function findEntry(files: ProjectFiles): { entry: string | undefined; others: string[] } {
  const scripts = files.list().filter((file) => {
    const text = files.read(file) ?? ''
    return (
      file.endsWith('.ipynb') || (file.endsWith('.py') && ENTRY_SIGNS.some((sign) => text.includes(sign)))
    )
  })
  const ranked = scripts
    .map((file) => ({ file, rank: rankOf(file) }))
    .sort((a, b) => a.rank - b.rank || (a.file < b.file ? -1 : 1))
  const [first, ...others] = ranked.map(({ file }) => file)
  return { entry: first, others: others.slice(0, 5) }
}

/** Signs of the entry file; files that only define things have none of them. */
const ENTRY_SIGNS = ['__main__', '.backward(', '.fit(', '.train(', 'main()']

function rankOf(file: string): number {
  const name = baseOf(file).toLowerCase()
  const depth = folderOf(file) === '' ? 0 : file.split('/').length
  const isTest = name.startsWith('test') || file.includes('test')
  const kind = ['train.py', 'main.py'].includes(name)
    ? 0
    : TRAINING_NAMES.some((word) => name.includes(word))
      ? 1
      : ['run', 'main'].some((word) => name.includes(word))
        ? 3
        : 5
  return kind + depth * 2 + (isTest ? 20 : 0) + (file.endsWith('.ipynb') ? 1 : 0)
}
