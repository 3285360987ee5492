import { EXIT_CODES, type ErrorKind } from '../client/errors'
import { readCliConfig } from './config'
import { COMMANDS } from './program'
import { runCli } from './run'

/** The generated parts of docs/cli.md, by the names of their places. */
export async function referenceParts(): Promise<Record<'exit-codes' | 'commands', string>> {
  return { 'exit-codes': exitCodes(), commands: await commands() }
}

const MEANINGS: Readonly<Record<ErrorKind, string>> = {
  failed: 'the job failed, or something unexpected happened',
  usage: 'what was asked for cannot be: a bad flag, job file or name',
  capacity: 'there is no machine to be had',
  permission: 'credentials, permissions or keys',
  'not-found': 'there is no such job, attempt or checkpoint',
  unconfirmed: 'it was accepted, and what became of it is not known yet',
  unavailable: 'the Temporal server, its workers or the object store do not answer',
  'not-survived': 'a rehearsal shows that the job does not survive an interruption',
  interrupted: 'ended by Ctrl-C or SIGTERM',
}

function exitCodes(): string {
  const rows = Object.entries(EXIT_CODES).map(
    ([kind, code]) => `| ${code} | \`${kind}\` | ${MEANINGS[kind as ErrorKind]} |`,
  )
  return ['| code | kind | meaning |', '|---|---|---|', '| 0 | | it is done |', ...rows].join('\n')
}

async function commands(): Promise<string> {
  const parts: string[] = []
  for (const { name } of COMMANDS)
    parts.push(`### crucible ${name}\n\n\`\`\`text\n${await helpOf(name)}\n\`\`\``)
  return parts.join('\n\n')
}

async function helpOf(name: string): Promise<string> {
  let text = ''
  await runCli([name, '--help'], {
    config: readCliConfig({}),
    stdout: { write: (piece: string) => (text += piece) },
    stderr: { write: () => {} },
    signals: process,
    exit: () => {},
    now: Date.now,
  })
  return text.trimEnd()
}
