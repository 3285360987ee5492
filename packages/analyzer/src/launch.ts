/** Commands that start a program: `python`, launchers of several processes, and shell scripts that hold such a command. */
import { folderOf, joined, pathFrom, type ProjectFiles } from './project'
import { assign, commandsOf, expanded, isAssignment, type Variables } from './shell'

/** How a program is started. */
export interface Launch {
  /** The script or notebook, relative to the project's folder. */
  entry: string
  /** The folder in which it runs, relative to the project's folder. */
  folder: string
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

/** The folder of the script itself. */
const OWN_FOLDER = /\$\(dirname (?:-- )?"?\$(?:0|\{?BASH_SOURCE(?:\[0\])?\}?)"?\)/g

/** The programs that a command line starts: first those whose names say that they train, then the others, the last one first. */
export function readCommands(command: string, files: ProjectFiles): Launch[] {
  return launchesOf(
    { text: command, file: undefined, args: [], folder: '' },
    { files, folder: '', depth: 0, read: [] },
  )
}

interface Script {
  text: string
  file: string | undefined
  args: readonly string[]
  /** The folder in which it starts. */
  folder: string
}

/** The scripts around a command. */
interface Around {
  files: ProjectFiles
  /** The folder in which it runs. */
  folder: string
  depth: number
  /** All scripts that were read for the command, each as often as it was. */
  read: string[]
}

function launchesOf(script: Script, around: Around): Launch[] {
  const { file, args } = script
  const variables: Variables = new Map()
  const launches: Launch[] = []
  /** Folders to which the end of parentheses, and `popd`, return. */
  const outer: string[] = []
  const pushed: string[] = []
  let { folder } = script
  // The most usual beginning of a script is `cd "$(dirname "$0")"`.
  const text = script.text.replaceAll(OWN_FOLDER, pathFrom(script.folder, folderOf(file ?? '')))
  for (const command of commandsOf(text)) {
    const all = expanded(command.words, { variables, args })
    if (command.array !== undefined) {
      assign(variables, command.array, all)
      continue
    }
    for (const word of all) if (word === '(') outer.push(folder)
    const words = withoutPrefixes(
      all.filter((word) => word !== '(' && word !== ')'),
      variables,
    )
    const [program, target = ''] = words
    const from = file === undefined ? undefined : { file, line: command.line, text: command.text }
    if (program === 'pushd') pushed.push(folder)
    // A folder of the machine is taken for the one in which the job's code lies.
    if (program === 'cd' || program === 'pushd')
      folder = /^[/~]|\$/.test(target) ? folder : joined(folder, target)
    else if (program === 'popd') folder = pushed.pop() ?? folder
    else
      for (const found of programsOf(words, { ...around, folder }))
        launches.push({ ...found, from: found.from ?? from })
    for (const word of all) if (word === ')') folder = outer.pop() ?? folder
  }
  const trains = ({ entry }: Launch): boolean =>
    TRAINING_NAMES.some((name) => entry.toLowerCase().includes(name))
  return [...launches.filter(trains), ...launches.filter((launch) => !trains(launch)).toReversed()]
}

/** Names of the programs that train, among others that prepare data or test. */
const TRAINING_NAMES = ['train', 'finetune', 'fine_tune', 'pretrain', 'fit', 'sft']

/** Programs that start another one. */
const PREFIXES = new Set(['exec', 'nohup', 'time', 'sudo', 'env', 'export'])
/** Prefixes with their own options. */
const PREFIXES_WITH_OPTIONS = new Set([
  'srun',
  'mpirun',
  'mpiexec',
  'conda',
  'mamba',
  'micromamba',
  'poetry',
  'uv',
  'pipenv',
  'pdm',
  'hatch',
  'pixi',
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
    } else if (PREFIXES.has(first)) rest = rest.slice(1)
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
  word.endsWith('.sh') ||
  word.endsWith('.py')

function programsOf(words: readonly string[], around: Around): Launch[] {
  const { files, depth, folder, read } = around
  const one = (found: Launch | undefined): Launch[] => (found === undefined ? [] : [found])
  const [program = '', ...rest] = words
  if (isPython(program)) return one(pythonOf(rest, around))
  if (program === 'torchrun' || program === 'deepspeed') return one(launcherOf(program, rest, around))
  if (program === 'accelerate' && rest[0] === 'launch')
    return one(launcherOf('accelerate', rest.slice(1), around))
  const inner = { ...around, depth: depth + 1 }
  const inline = SHELLS.has(program) ? rest.findIndex((word) => /^-[a-z]*c$/.test(word)) : -1
  if (inline !== -1 && depth < DEPTH_MAX)
    return launchesOf({ text: rest[inline + 1] ?? '', file: undefined, args: [], folder }, inner)
  if (program === 'make') return depth < DEPTH_MAX && read.length < SCRIPTS_MAX ? madeBy(rest, inner) : []
  const script = SHELLS.has(program) ? rest.find((word) => !word.startsWith('-')) : program
  if (script === undefined) return []
  if (script.endsWith('.py') || script.endsWith('.ipynb')) {
    const at = words.indexOf(script)
    return [launch('python', { entry: script, args: words.slice(at + 1) }, around)]
  }
  if (script.endsWith('.sh') && depth < DEPTH_MAX && read.length < SCRIPTS_MAX) {
    const file = joined(folder, script)
    const text = files.read(file)
    if (text === undefined) return []
    const args = words.slice(words.indexOf(script) + 1)
    read.push(script)
    return launchesOf({ text, file, args, folder }, inner)
  }
  const notebook = words.find((word) => word.endsWith('.ipynb'))
  return notebook === undefined ? [] : [launch('python', { entry: notebook, args: [] }, around)]
}

/** The programs of a target of a Makefile, which may be in the folder of `-C`. Its dependencies are not followed. */
function madeBy(words: readonly string[], around: Around): Launch[] {
  const at = words.indexOf('-C')
  const folder = at === -1 ? around.folder : joined(around.folder, words[at + 1] ?? '')
  const others = at === -1 ? words : words.toSpliced(at, 2)
  const wanted = others.find((word) => !word.startsWith('-') && !isAssignment(word))
  around.read.push(folder)
  const texts = ['Makefile', 'makefile', 'GNUmakefile'].map((name) => around.files.read(joined(folder, name)))
  const rows = (texts.find((text) => text !== undefined) ?? '').replaceAll('\\\n', ' ').split('\n')
  const start = rows.findIndex((row) => {
    const [targets, prerequisites] = row.split(':', 2)
    const isRule =
      /^[A-Za-z_]/.test(row) && prerequisites?.startsWith('=') === false && !targets!.includes('=')
    return isRule && (wanted === undefined || targets!.split(' ').includes(wanted))
  })
  const end = rows.findIndex((row, index) => index > start && row !== '' && !row.startsWith('\t'))
  const recipe = start === -1 ? [] : rows.slice(start + 1, end === -1 ? rows.length : end)
  const text = [
    ...rows.flatMap((row) => {
      const [, name, value] = /^(\w+) *[:?]?= *(\S.*)$/.exec(row) ?? []
      return name === undefined ? [] : [`${name}=${value}`]
    }),
    ...others.filter(isAssignment),
    ...recipe.map((row) => row.replace(/^\t[@-]*/, '')),
  ].join('\n')
  const shell = text.replaceAll(/\$\((\w+)\)/g, '${$1}').replaceAll('$$', '$')
  return launchesOf({ text: shell, file: undefined, args: [], folder }, { ...around, folder })
}

/** Options of Python that have a value. */
const PYTHON_OPTIONS_WITH_VALUE = new Set(['-W', '-X'])

function pythonOf(words: readonly string[], around: Around): Launch | undefined {
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at]!
    if (word === '-m') return moduleOf(words.slice(at + 1), around)
    // The program is in the command itself.
    if (word === '-c' || word === '-' || word.startsWith('<<')) return undefined
    if (PYTHON_OPTIONS_WITH_VALUE.has(word)) at += 1
    else if (!word.startsWith('-'))
      return launch('python', { entry: word, args: words.slice(at + 1) }, around)
  }
  return undefined
}

const MODULES_OF_LAUNCHERS: Readonly<Record<string, Launch['launcher']>> = {
  'torch.distributed.run': 'torchrun',
  'torch.distributed.launch': 'torchrun',
  'accelerate.commands.launch': 'accelerate',
}

function moduleOf(words: readonly string[], around: Around): Launch | undefined {
  const [name = '', ...args] = words
  const launcher = MODULES_OF_LAUNCHERS[name]
  if (launcher !== undefined) return launcherOf(launcher, args, around)
  const entry = fileOfModule(name, around)
  return entry === undefined ? undefined : launch('python', { entry, args }, around)
}

/** The file of a module, relative to the folder in which it runs. */
function fileOfModule(name: string, { files, folder }: Around): string | undefined {
  const path = name.split('.').join('/')
  const candidates = ['', 'src'].flatMap((source) => [
    joined(source, `${path}.py`),
    joined(source, `${path}/__main__.py`),
  ])
  return candidates.find((file) => files.read(joined(folder, file)) !== undefined)
}

function launcherOf(
  launcher: Launch['launcher'],
  words: readonly string[],
  around: Around,
): Launch | undefined {
  const settings = new Map<string, string>()
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at]!
    if (word === '-m' || word === '--module') {
      const entry = fileOfModule(words[at + 1] ?? '', around)
      return entry === undefined
        ? undefined
        : launch(launcher, { entry, args: words.slice(at + 2), settings }, around)
    }
    if (word.endsWith('.py'))
      return launch(launcher, { entry: word, args: words.slice(at + 1), settings }, around)
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
  { folder }: Around,
): Launch {
  const given = PROCESS_SETTINGS.map((name) => settings.get(name)).find((value) => value !== undefined)
  const processes = Number(given)
  return {
    entry: joined(folder, entry),
    folder,
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
