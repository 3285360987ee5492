import { describe, expect, it } from '@jest/globals'
import { startLeashed } from '../../../../cli/dev/temporal/leash'
import { identify, isAlive } from '../../../../service/process-identity'

/** A shell script as a process on a leash; resolves its promise with the first line that it prints. */
function leashed(script: string, graceSeconds?: number) {
  const lines: string[] = []
  let heard = (): void => {}
  const firstLine = new Promise<void>((resolve) => (heard = resolve))
  const process = startLeashed('/bin/sh', ['-c', script], {
    onOutput: (line) => {
      lines.push(line)
      heard()
    },
    graceSeconds,
  })
  return { process, lines, firstLine }
}

describe('a leashed process', () => {
  it('reports its process id, output and exit code', async () => {
    const { process, lines } = leashed('echo $$; echo trouble >&2; exit 7')
    expect(await process.exited).toEqual({ code: 7, signal: null })
    expect(new Set(lines)).toEqual(new Set([String(process.pid), 'trouble']))
    expect(process.output()).toContain('trouble')
  })

  it('keeps the last of a long output', async () => {
    const { process } = leashed('n=0; while [ $n -lt 500 ]; do n=$((n + 1)); echo "line $n"; done')
    await process.exited
    const kept = process.output().split('\n')
    expect(kept).toHaveLength(20)
    expect(kept.at(-1)).toBe('line 500')
  })

  it('keeps the cause of a crash before a long stack', async () => {
    const cause = 'panic: listen tcp 127.0.0.1:0: bind: address already in use'
    const { process } = leashed(
      `echo '${cause}' >&2; for n in $(seq 100); do echo "line $n" >&2; done; exit 2`,
    )
    await process.exited
    const kept = process.output().split('\n')
    expect([kept.length, kept[0], kept.at(-1)]).toEqual([20, cause, 'line 100'])
  })

  it('inherits no variables of this process', async () => {
    const { process } = leashed('env | cut -d= -f1 | grep -vE "^(PWD|SHLVL|_|OLDPWD)$"')
    await process.exited
    expect(process.output()).toBe('PATH')
  })

  it('reports a missing executable', async () => {
    const process = startLeashed('/nowhere/temporal', [])
    expect((await process.exited).code).toBe(127)
    expect(process.output()).toContain('/nowhere/temporal')
  })

  it('ends on stop, which can be repeated', async () => {
    const { process, firstLine } = leashed(
      'trap "echo bye; exit 3" TERM; echo up; while :; do sleep 0.05; done',
    )
    await firstLine
    const exits = await Promise.all([process.stop(), process.stop()])
    expect(exits).toEqual([
      { code: 3, signal: null },
      { code: 3, signal: null },
    ])
    expect(process.output()).toContain('bye')
    expect(await process.stop()).toEqual({ code: 3, signal: null })
  })

  it('is killed when it does not end within its grace', async () => {
    const { process, firstLine } = leashed('trap "" TERM; echo up; while :; do sleep 0.05; done', 1)
    await firstLine
    const identity = identify(process.pid)!
    expect(await process.stop()).toEqual({ code: null, signal: 'SIGKILL' })
    expect(isAlive(identity)).toBe(false)
  })
})
