import { describe, expect, it } from '@jest/globals'
import type { Machine } from '../../src/machines/machine'
import { parseTimeSpan } from '../../src/machines/systemd/time-spans'
import { until } from '../support/until'
import { TRIED_KINDS, sh, uniqueSleep, useMachines } from './machines'

const createWorld = useMachines()

async function bootOne(enclosure: (typeof TRIED_KINDS)[number]): Promise<Machine> {
  const machine = createWorld().create({ enclosure })
  await machine.boot()
  return machine
}

const state = async (machine: Machine, unit: string) =>
  (await sh(machine, `systemctl show -p ActiveState --value ${unit}`)).stdout.trim()

describe.each(TRIED_KINDS)('units on a machine of %s', (enclosure) => {
  it('keep running when their starter has ended, and are stopped with everything that they started', async () => {
    const machine = await bootOne(enclosure)
    const sleep = uniqueSleep()
    const started = await sh(
      machine,
      `systemd-run --unit=work sh -c '${sleep.command} & setsid ${sleep.command} & wait'`,
    )
    expect(started).toMatchObject({ exitCode: 0, stderr: 'Running as unit: work.service\n' })
    await until(() => sleep.pids().length === 2)
    expect(await sh(machine, 'systemctl is-active work')).toMatchObject({ exitCode: 0, stdout: 'active\n' })
    expect((await sh(machine, 'systemctl status work.service')).stdout).toMatch(
      /Active: active[^]*Main PID: \d+/,
    )
    expect((await sh(machine, 'systemctl stop work')).exitCode).toBe(0)
    expect(sleep.pids()).toEqual([])
    expect(await sh(machine, 'systemctl is-active work')).toMatchObject({ exitCode: 3, stdout: 'inactive\n' })
    expect(await sh(machine, 'systemctl status work')).toMatchObject({
      exitCode: 4,
      stderr: 'Unit work.service could not be found.\n',
    })
    expect((await sh(machine, 'systemctl stop work')).exitCode).toBe(5)
  })

  it('are started once under one name', async () => {
    const machine = await bootOne(enclosure)
    const sleep = uniqueSleep()
    const start = `systemd-run --unit=once ${sleep.command}`
    const answers = await Promise.all([sh(machine, start), sh(machine, start), sh(machine, start)])
    expect(answers.map(({ exitCode }) => exitCode).sort()).toEqual([0, 1, 1])
    expect(answers.map(({ stderr }) => stderr).join('')).toContain('already loaded or has a fragment file')
    await until(() => sleep.pids().length === 1)
    expect((await sh(machine, 'systemctl list-units --no-legend')).stdout.split('\n')).toHaveLength(2)
  })

  it('leave their last words on the console if they are set to', async () => {
    const machine = await bootOne(enclosure)
    const unit = 'systemd-run -p StandardError=journal+console'
    await sh(
      machine,
      `${unit} --unit=loud sh -c 'echo last words >&2; exit 3'; systemd-run --unit=quiet echo other`,
    )
    await until(async () => (await machine.console()).includes('last words\n'))
    expect((await sh(machine, 'systemctl status loud')).stdout).toContain('last words')
    expect(await machine.console()).not.toContain('other')
    expect((await sh(machine, 'systemd-run -p StandardError=tty --unit=tty true')).exitCode).toBe(1)
  })

  it('that fail are kept until they are reset, unless they are collected', async () => {
    const machine = await bootOne(enclosure)
    await sh(machine, "systemd-run --unit=bad sh -c 'echo what happened; exit 9'")
    await until(async () => (await state(machine, 'bad')) === 'failed')
    const shown = await sh(machine, 'systemctl show bad -p Result,ExecMainStatus; systemctl status bad')
    expect(shown.stdout).toMatch(/Result=exit-code\nExecMainStatus=9\n[^]*what happened\n$/)
    expect((await sh(machine, 'systemd-run --unit=bad true')).exitCode).toBe(1)
    await sh(machine, 'systemctl reset-failed bad')
    expect((await sh(machine, 'systemd-run --wait --unit=bad true')).exitCode).toBe(0)
    const collected = await sh(
      machine,
      "systemd-run --collect --wait -q --unit=bad sh -c 'exit 3'; echo $?; systemctl is-active bad",
    )
    expect(collected).toMatchObject({ stdout: '3\ninactive\n', stderr: '' })
    expect((await sh(machine, 'systemctl show -p LoadState bad')).stdout).toBe('LoadState=not-found\n')
  })

  it('have their own environment, and folders', async () => {
    const machine = await bootOne(enclosure)
    const places = '-p StateDirectory=crucible/7 --setenv=A=1 -p "Environment=B=2 C=3"'
    const script =
      'exec > "$STATE_DIRECTORY/printed"; echo "$A$B$C" "$OTHER" "$STATE_DIRECTORY"; [ -n "$INVOCATION_ID" ]; pwd'
    const answer = await sh(
      machine,
      `export OTHER=caller; systemd-run --wait -q ${places} --working-directory=/etc sh -c '${script}'; cat "\${STATE_DIRECTORY:-/var/lib/crucible}/7/printed"`,
    )
    expect(answer.stdout).toMatch(/^123 {2}\/.*var\/lib\/crucible\/7\n\/etc\n$/)
  })

  it('leave nothing behind when their main process ends, and ask before they kill', async () => {
    const machine = await bootOne(enclosure)
    const sleep = uniqueSleep()
    const left = `sh -c 'setsid ${sleep.command} & sleep 0.3'`
    await sh(machine, `systemd-run --unit=left ${left}`)
    await until(() => sleep.pids().length === 1)
    await until(async () => (await state(machine, 'left')) === 'inactive')
    expect(sleep.pids()).toEqual([])
    const deaf = `sh -c 'trap "" TERM; echo ready; while :; do sleep 0.1; done'`
    await sh(machine, `systemd-run --unit=deaf -p TimeoutStopSec=500ms ${deaf}`)
    await until(async () => (await sh(machine, 'systemctl status deaf')).stdout.includes('ready'))
    await sh(machine, 'systemctl stop deaf')
    expect((await sh(machine, 'systemctl show -p Result --value deaf')).stdout).toBe('timeout\n')
  })

  it('hear signals, alone or together', async () => {
    const machine = await bootOne(enclosure)
    const script = `trap "echo heard" USR1; echo ready; while :; do sleep 0.1; done`
    await sh(machine, `systemd-run --unit=ears sh -c '${script}'`)
    const log = async () => (await sh(machine, 'systemctl status ears')).stdout
    await until(async () => (await log()).includes('ready'))
    await sh(machine, 'systemctl kill --kill-whom=main -s USR1 ears')
    await until(async () => (await log()).includes('heard'))
    await sh(machine, 'systemctl kill -s KILL ears')
    await until(async () => (await state(machine, 'ears')) === 'failed')
    expect((await sh(machine, 'systemctl show -p Result,ExecMainStatus ears')).stdout).toBe(
      'Result=signal\nExecMainStatus=9\n',
    )
  })

  it('are started again when they should be, and not for ever', async () => {
    const machine = await bootOne(enclosure)
    const count = 'echo x >> "$STATE_DIRECTORY/count"'
    const options = '-p StateDirectory=crucible -p Restart=on-failure -p RestartSec=20ms'
    await sh(
      machine,
      `systemd-run --unit=again ${options} sh -c '${count}; [ $(wc -l < "$STATE_DIRECTORY/count") = 3 ]'`,
    )
    const lines = async () =>
      (await sh(machine, 'wc -l < "${STATE_DIRECTORY:-/var/lib/crucible}/count"')).stdout.trim()
    await until(async () => (await state(machine, 'again')) === 'inactive')
    expect(await lines()).toBe('3')
    await sh(machine, `systemd-run --unit=loop ${options} -p StartLimitBurst=4 sh -c '${count}; false'`)
    await until(async () => (await state(machine, 'loop')) === 'failed')
    expect(await lines()).toBe('7')
  })

  it('are refused what this cloud or systemd does not know', async () => {
    const machine = await bootOne(enclosure)
    for (const wrong of [
      '-p Frob=1 true',
      '--frob true',
      '',
      '-p KillMode=never true',
      '-p User=ubuntu true',
      '-p RuntimeMaxSec=1h true',
      '--on-active=2 true',
      '/nowhere/program',
      'no-such-program',
    ]) {
      const answer = await sh(machine, `systemd-run ${wrong}`)
      expect([wrong, answer.exitCode]).toEqual([wrong, 1])
      expect(answer.stderr).not.toBe('')
    }
    expect((await sh(machine, 'systemctl enable x')).exitCode).toBe(1)
    expect((await sh(machine, 'systemctl list-units --no-legend')).stdout).toBe('')
  })
})

describe('time spans', () => {
  it.each([
    ['90', 90_000],
    ['1h 30min', 5_400_000],
    ['2d', 172_800_000],
    ['1.5s', 1500],
    ['250ms', 250],
    ['1w', 604_800_000],
    ['infinity', Infinity],
  ])('%s', (text, ms) => {
    expect(parseTimeSpan(text)).toBe(ms)
  })

  it('are refused when they are none', () => {
    for (const wrong of ['', 'x', '1 fortnight', '5s x']) expect(() => parseTimeSpan(wrong)).toThrow()
  })
})
