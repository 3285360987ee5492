import { EXIT_CODES, type ErrorKind } from '../../client/errors'
import { readCliConfig } from './config'
import { COMMANDS } from '../program'
import { runCli } from '../run'
import { TRUFFLE_COMMANDS } from '../truffle/program'
import { runTruffle } from '../truffle/run'

/** The generated parts of the pages in docs/reference: page, name of its place in the page, text. */
export interface ReferencePart {
  page: string
  name: string
  text: string
}

/** Pages of commands, by the groups of the help. */
const PAGE_OF_GROUP: Readonly<Record<string, string>> = {
  Begin: 'cli-begin.md',
  'Run jobs': 'cli-run-jobs.md',
  Look: 'cli-look.md',
  Operate: 'cli-operate.md',
}

export async function referenceParts(): Promise<ReferencePart[]> {
  const parts: ReferencePart[] = [{ page: 'exit-codes.md', name: 'exit-codes', text: exitCodes() }]
  const helps = new Map<string, Help>()
  for (const { name } of COMMANDS) helps.set(name, parseHelp(await helpOf(name)))
  const shared = optionsOfJobs(helps)
  for (const [group, page] of Object.entries(PAGE_OF_GROUP)) {
    const names = COMMANDS.filter((command) => command.group === group).map(({ name }) => name)
    const texts = names.map((name) =>
      section({ program: 'crucible', name }, helps.get(name)!, JOB_COMMANDS.includes(name) ? shared : []),
    )
    parts.push({ page, name: 'commands', text: texts.join('\n\n') })
  }
  parts.push({ page: 'cli-run-jobs.md', name: 'job-options', text: fenced(shared) })
  return [...parts, ...(await truffleParts())]
}

/** Returns the shared options of truffle once, and each command with its own. */
async function truffleParts(): Promise<ReferencePart[]> {
  const helps = new Map<string, Help>()
  for (const { name } of TRUFFLE_COMMANDS) helps.set(name, parseHelp(await helpOf(name, runTruffle)))
  const shared = entriesOf(helps.get('version')!, 'Options:')
  const texts = [...helps].map(([name, help]) => section({ program: 'truffle', name }, help, shared))
  return [
    { page: 'truffle.md', name: 'commands', text: texts.join('\n\n') },
    { page: 'truffle.md', name: 'shared-options', text: fenced(shared) },
  ]
}

const MEANINGS: Readonly<Record<ErrorKind, string>> = {
  failed: 'the job failed, or something unexpected happened',
  usage: 'a bad flag, job file or name',
  capacity: 'no machine is available',
  permission: 'credentials, permissions or keys',
  'not-found': 'no such job, attempt or checkpoint',
  unconfirmed: 'the request was accepted, but its outcome is still unknown',
  unavailable: 'the Temporal server, its workers or the object store do not answer',
  'not-survived': 'a rehearsal shows that the job does not survive an interruption',
  conditional: 'capacity exists, under conditions that `truffle validate` lists',
  interrupted: 'ended by Ctrl-C or SIGTERM',
}

function exitCodes(): string {
  const rows = Object.entries(EXIT_CODES).map(
    ([kind, code]) => `| ${code} | \`${kind}\` | ${MEANINGS[kind as ErrorKind]} |`,
  )
  return ['| code | kind | meaning |', '|---|---|---|', '| 0 | | success |', ...rows].join('\n')
}

/** A help text: the paragraphs before its lists, and each list as its entries (an entry may have several lines). */
interface Help {
  paragraphs: string[]
  lists: { title: string; entries: string[] }[]
}

function parseHelp(text: string): Help {
  const help: Help = { paragraphs: [], lists: [] }
  for (const block of text.split('\n\n')) {
    const [title = '', ...lines] = block.split('\n')
    if (!/^(Arguments|Options|Examples):$/.test(title)) {
      help.paragraphs.push(block)
      continue
    }
    const entries: string[] = []
    for (const line of lines) {
      if (/^ {2}\S/.test(line)) entries.push(line)
      else entries[entries.length - 1] += `\n${line}`
    }
    help.lists.push({ title, entries })
  }
  return help
}

/** Options of every command; the page lists them once. */
const EVERYWHERE = /^ {2}(?:--json|-h, --help) /

const entriesOf = ({ lists }: Help, title: string): string[] =>
  (lists.find((list) => list.title === title)?.entries ?? []).filter((entry) => !EVERYWHERE.test(entry))

const nameOf = (entry: string): string => /^\s*((?:-\w, )?--[\w-]+)/.exec(entry)?.[1] ?? entry

/** Returns the options that describe a job, which `submit` shares with `plan` and `rehearse`. */
function optionsOfJobs(helps: ReadonlyMap<string, Help>): string[] {
  const names = (command: string): string[] => entriesOf(helps.get(command)!, 'Options:').map(nameOf)
  const others = [names('plan'), names('rehearse')]
  return entriesOf(helps.get('submit')!, 'Options:').filter((entry) =>
    others.every((list) => list.includes(nameOf(entry))),
  )
}

/** The commands that take the options of a job. */
const JOB_COMMANDS = ['submit', 'plan', 'rehearse']

function section(
  { program, name }: { program: string; name: string },
  help: Help,
  shared: readonly string[],
): string {
  const [usage = '', ...about] = help.paragraphs
  const sharedNames = shared.map(nameOf)
  const lines: string[] = [usage]
  for (const title of ['Arguments:', 'Options:', 'Examples:']) {
    const entries = entriesOf(help, title).filter((entry) => !sharedNames.includes(nameOf(entry)))
    if (title === 'Options:' && shared.length > 0)
      entries.unshift(program === 'truffle' ? '  and the shared options' : '  and the job options')
    if (entries.length > 0) lines.push('', title, ...entries)
  }
  const text = about.join('\n\n').replace(/\n(?!\n)/g, ' ')
  return [`## ${program} ${name}`, escaped(text), fenced(lines)].join('\n\n')
}

/** Escapes placeholders such as <job>, so that Markdown does not read them as HTML. */
const escaped = (text: string): string => text.replace(/<([\w-]+)>/g, '`<$1>`')

const fenced = (lines: readonly string[]): string => ['```text', ...lines, '```'].join('\n')

async function helpOf(name: string, run: typeof runCli = runCli): Promise<string> {
  let text = ''
  await run([name, '--help'], {
    config: readCliConfig({}),
    stdout: { write: (piece: string) => (text += piece) },
    stderr: { write: () => {} },
    signals: process,
    exit: () => {},
    now: Date.now,
  })
  return text.trimEnd()
}
