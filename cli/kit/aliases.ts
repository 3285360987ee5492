import type { Command } from 'commander'
import { nearest } from '../../intake/nearest'

/** Commands of other tools (kubectl, docker, sky, slurm, aws), mapped to our commands. */

/** Aliases of commands. */
const ALIASES: Readonly<Record<string, string>> = {
  ls: 'list',
  ps: 'list',
  jobs: 'list',
  queue: 'list',
  squeue: 'list',
  status: 'show',
  describe: 'show',
  get: 'show',
  info: 'show',
  inspect: 'show',
  stop: 'cancel',
  kill: 'cancel',
  scancel: 'cancel',
  run: 'submit',
  launch: 'submit',
  sbatch: 'submit',
  log: 'logs',
  tail: 'logs',
  event: 'events',
  history: 'events',
  artifact: 'artifacts',
  outputs: 'artifacts',
  checkpoint: 'checkpoints',
  move: 'migrate',
  preempt: 'interrupt',
  cost: 'budget',
  check: 'doctor',
}

/** Commands that show one job; without a job, they mean the list. */
const ALL_WITHOUT_JOB = ['status', 'describe', 'get', 'info']

/** Words whose command depends on more than the word. */
const POINTERS: Readonly<Record<string, string>> = {
  ...pointers(
    ['rm', 'delete', 'down'],
    'To end a job: `crucible cancel JOB`. To end machines without an owner: `crucible gc`.',
  ),
  ...pointers(
    ['start', 'up', 'serve'],
    'To start Crucible: `crucible dev`. To start a job: `crucible submit FILE`.',
  ),
  ...pointers(['restart', 'retry', 'rerun', 'resume'], 'To run a job again: `crucible submit --from JOB`.'),
  ...pointers(
    ['download', 'cp', 'scp', 'rsync', 'pull'],
    'To get the files of a job: `crucible artifacts JOB --download FOLDER`.',
  ),
  ...pointers(
    ['ssh', 'exec', 'attach'],
    "Machines accept no logins. To see a job's output: `crucible logs -f JOB`.",
  ),
  ...pointers(
    ['login', 'configure'],
    'To set up an account: `crucible setup aws`. To check everything: `crucible doctor`.',
  ),
  ...pointers(
    ['reserve', 'buy'],
    'To reserve capacity: `crucible reservations reserve`. To see what is for sale: `crucible reservations offers`.',
  ),
  ...pointers(['job'], 'A command has no group before it: `crucible list`, `crucible show JOB`.'),
  ...pointers(['version'], 'To see the version: `crucible --version`.'),
}

function pointers(words: string[], hint: string): Record<string, string> {
  return Object.fromEntries(words.map((word) => [word, hint]))
}

/** Other words for the actions of a command. */
const ACTIONS: Readonly<Record<string, readonly string[]>> = {
  trigger: ['run', 'start'],
  pause: ['stop', 'disable', 'suspend'],
  resume: ['enable', 'unpause'],
  delete: ['remove', 'rm'],
  update: ['edit', 'change', 'apply'],
  create: ['add', 'new'],
  show: ['get', 'describe', 'info', 'status'],
  list: ['ls'],
  reserve: ['buy', 'create'],
  release: ['cancel', 'delete', 'end', 'stop'],
}

/** Options of other tools for our options. */
const OPTIONS: Readonly<Record<string, readonly string[]>> = {
  '--tail': ['-n', '--lines'],
  '--limit': ['-n', '--max', '--last'],
  '--json': ['-o', '--output', '--format'],
  '--follow': ['--watch', '-w'],
  '--duration': ['--time', '-t', '--walltime'],
  '--interruptible': ['--spot', '--use-spot', '--preemptible'],
  '--backend': ['--cloud', '--infra', '--partition', '-p', '--queue'],
  '--budget': ['--cost-limit', '--max-cost', '--budget-limit', '--spend-limit'],
  '--max-price': ['--max-hourly-cost', '--hourly-price', '--spot-price', '--max-spot-price'],
  '--deadline': ['--max-duration', '--timeout'],
  '--env': ['-e'],
  '--name': ['-J'],
  '--cpus': ['-c', '--cpus-per-task'],
  '--accelerator': ['--gpu-type'],
  '--yes': ['-y', '--force'],
  '--to': ['--backend', '--output', '-o'],
  '--download': ['--output', '-o'],
}

/** The option of a command that was meant by another one. */
export function optionMeant(option: string, options: readonly string[]): string | undefined {
  return options.find((one) => OPTIONS[one]?.includes(option)) ?? nearest(option, options)
}

/** The option whose value people write as a further argument. */
const VALUE_OPTIONS: Readonly<Record<string, string>> = {
  list: '--state',
  migrate: '--to',
  why: '--decision',
}

/** The option that was meant by a further argument of a command. */
export function optionOfSurplus({ name, word }: { name: string; word: string }): string | undefined {
  return Object.hasOwn(VALUE_OPTIONS, name) ? `${VALUE_OPTIONS[name]!} ${word}` : undefined
}

/** The action that was meant by another word, if it is among the choices. */
export function actionMeant(word: string, choices: readonly string[]): string | undefined {
  return choices.find((choice) => ACTIONS[choice]?.includes(word)) ?? nearest(word, choices)
}

/** Replaces an alias in a command line with our name for the command. */
export function withoutAliases(args: readonly string[]): string[] {
  const at = commandAt(args)
  const word = args[at] ?? ''
  if (!Object.hasOwn(ALIASES, word)) return [...args]
  const isForAll = ALL_WITHOUT_JOB.includes(word) && args.every((arg, index) => index === at || isOption(arg))
  return args.with(at, isForAll ? 'list' : ALIASES[word]!)
}

/** Returns the alternative for a word that people try and that is not a command. */
export function pointerFor(word: string): string | undefined {
  return Object.hasOwn(POINTERS, word) ? POINTERS[word] : undefined
}

/** Removes `help` before a word that is no command of the program: commander would print nothing, and the error names the command. */
export function withoutLostHelp({ commands }: Command, args: readonly string[]): string[] {
  const words = args.filter((arg) => !arg.startsWith('-'))
  const isLost = words[0] === 'help' && !commands.some((command) => command.name() === words[1])
  return isLost ? args.toSpliced(args.indexOf('help'), 1) : [...args]
}

/** `help ps` asks about `ps`. */
function commandAt(args: readonly string[]): number {
  const first = args.findIndex((arg) => !arg.startsWith('-'))
  return args[first] === 'help' ? args.findIndex((arg, at) => at > first && !arg.startsWith('-')) : first
}

function isOption(arg: string): boolean {
  return arg.startsWith('-') && arg !== '--help' && arg !== '-h'
}
