import { defined } from '../../core/defined'
import { MACHINE_VARIABLE } from '../../core/queues'
import { CONTROL_VARIABLE, ROOT_OPTION, type ProcessInfo, type ProcessReader } from './processes'
import { runProgram } from './programs'

/** macOS shows environments with `-E`, the other BSDs (and procps) with `e`. */
const SELECTION: Partial<Record<NodeJS.Platform, string[]>> = { darwin: ['-axww', '-E'] }
const COLUMNS = 'pid=,ppid=,pgid=,stat=,lstart=,command='
const PS_TIMEOUT_MS = 10_000

/** Reads all processes with one `ps`, for systems without `/proc`. */
export function createPsReader(platform: NodeJS.Platform): ProcessReader {
  const selection = SELECTION[platform] ?? ['axwwe']
  const all = async (): Promise<ProcessInfo[]> => {
    const answer = await runProgram('ps', [...selection, '-o', COLUMNS], {
      // Start times are compared as text, so they must not change with the time zone or the language.
      env: { PATH: '/bin:/usr/bin', LC_ALL: 'C', TZ: 'UTC' },
      timeoutMs: PS_TIMEOUT_MS,
    })
    if (answer.kind !== 'answered') throw new Error(`processes cannot be listed: ps ${answer.message}`)
    return parsePs(answer.output)
  }
  return { one: async (pid) => (await all()).find((one) => one.pid === pid), all }
}

const LINE = /^\s*(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s+(\w{3}\s+\w{3}\s+\d+\s+[\d:]+\s+\d{4})\s(.*)$/
const MARK = new RegExp(`(?:^|\\s)${MACHINE_VARIABLE}=(\\S+)`)
const FOLDER = new RegExp(`(?:^|\\s)(?:${CONTROL_VARIABLE}=|${ROOT_OPTION} )(\\S+)`)

/** Lines of `ps -o pid=,ppid=,pgid=,stat=,lstart=,command=`; other lines are skipped. @internal Tests read output of other systems. */
export function parsePs(output: string): ProcessInfo[] {
  return output.split('\n').flatMap((line) => {
    const match = LINE.exec(line)
    if (match === null) return []
    const [, pid, parent, group, state, started, command] = match
    const machine = MARK.exec(command!)?.[1]
    const folder = machine === undefined ? undefined : FOLDER.exec(command!)?.[1]
    return [
      {
        pid: Number(pid),
        parent: Number(parent),
        group: Number(group),
        isDefunct: state!.startsWith('Z'),
        started: started!.replace(/\s+/g, ' '),
        ...defined({ machine, folder }),
      },
    ]
  })
}
