import { messageOf } from '../../../core/errors'
import type { MachineHandle } from '../../../core/handle'
import { SECOND_MS } from '../../../core/time/time'
import type { CallContext, LogPage } from '../../backend'
import { runOnMachine, script } from './commands'
import { hasCode } from '../errors'
import type { Host } from '../host'
import { isMachineId } from './machines'

/** The end of the console is the informative part; the provider keeps its last 64 KiB. */
const CONSOLE_CHARS_MAX = 8_000
/** A diagnosis of at most this age counts as the requested one. */
const DIAGNOSED_JUST_NOW_MS = 20 * SECOND_MS

/** Returns the agent's state, the machine's report on its runner if the agent responds, and the console. */
export async function logs(
  host: Host,
  { id, attemptId }: MachineHandle,
  { signal }: CallContext,
): Promise<LogPage> {
  if (!isMachineId(id)) return { text: '' }
  const console = await readConsole(host, id, signal)
  if (console === undefined) return { text: '' }
  const agent = await host.api.commands.agent(id, signal).catch(() => 'unknown' as const)
  const inside =
    agent !== 'unknown' && agent?.isOnline ? await ask(host, { id, attemptId }, signal) : undefined
  const text = [
    `# The agent (SSM)\n${agentInWords(agent)}`,
    ...(inside === undefined ? [] : [`# The machine\n${inside.text}`]),
    `# The console\n${console.trim() === '' ? 'nothing yet' : console.trimEnd()}`,
  ].join('\n\n')
  const lastWords = inside?.lastWords ?? console.split('\n').findLast((line) => line.trim() !== '')
  return { text: masked(text), lastWords: lastWords === undefined ? undefined : masked(lastWords.trim()) }
}

function agentInWords(agent: { isOnline: boolean } | undefined | 'unknown'): string {
  if (agent === 'unknown') return 'the provider does not report it'
  if (agent === undefined) return 'is not registered: it never was, or the machine has ended'
  return agent.isOnline ? 'is online' : 'has lost its connection'
}

/** `undefined` without such a machine. */
async function readConsole(host: Host, id: string, signal: AbortSignal): Promise<string | undefined> {
  try {
    return ((await host.api.machines.console(id, signal)) ?? '').slice(-CONSOLE_CHARS_MAX)
  } catch (error) {
    return hasCode(error, 'InvalidInstanceID.NotFound') ? undefined : `cannot be read: ${messageOf(error)}`
  }
}

async function ask(
  host: Host,
  { id, attemptId }: { id: string; attemptId: string },
  signal: AbortSignal,
): Promise<{ text: string; lastWords?: string }> {
  const command = {
    machineId: id,
    comment: `crucible diagnose ${attemptId}`,
    lines: script('diagnose.py', { attemptId }),
    goodForMs: DIAGNOSED_JUST_NOW_MS,
  }
  try {
    const { stdout, stderr } = await runOnMachine(host, command, signal)
    return told(stdout) ?? { text: `${stdout}\n${stderr}`.trim() }
  } catch (error) {
    return { text: `does not answer: ${messageOf(error)}` }
  }
}

/** The output of `machine/diagnose.py`; nothing if it was truncated. */
function told(stdout: string): { text: string; lastWords?: string } | undefined {
  try {
    const { text, last } = JSON.parse(stdout) as { text: string; last: string | null }
    return { text, lastWords: last === null ? undefined : last }
  } catch {
    return undefined
  }
}

/** Keys, and signatures in URLs or user data. */
const SECRETS = [
  /\b(?:AKIA|ASIA)[0-9A-Z]{16}\b/g,
  /(?<=X-Amz-(?:Signature|Credential|Security-Token)=)[^&\s"']+/gi,
  /(?<=aws_(?:secret_access_key|session_token)\s{0,4}[=:]\s{0,4})\S+/gi,
]

function masked(text: string): string {
  return SECRETS.reduce((clean, pattern) => clean.replace(pattern, '***'), text)
}
