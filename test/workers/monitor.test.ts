import { afterEach, beforeEach, expect, it } from '@jest/globals'
import { Monitor } from '../../workers/monitor'

let monitor: Monitor
beforeEach(async () => {
  monitor = await Monitor.open({ host: '127.0.0.1', port: 0 })
})
afterEach(() => monitor.close())

async function ask(path: string, method = 'GET'): Promise<string> {
  const answer = await fetch(`http://${monitor.address}${path}`, { method })
  return `${answer.status} ${(await answer.text()).trim()}`
}

it('says that the process lives, whatever its workers do', async () => {
  expect(await ask('/healthz')).toBe('200 alive')
})

it('says whether all workers poll', async () => {
  expect(await ask('/readyz')).toBe('503 not all workers poll')
  monitor.isReady = () => true
  expect(await ask('/readyz')).toBe('200 all workers poll')
})

it('has no metrics while the workers have none', async () => {
  expect(await ask('/metrics')).toMatch(/^503 no metrics: /)
})

it.each([
  ['/', 'GET'],
  ['/metrics', 'POST'],
])('has nothing else: %s by %s', async (path, method) => {
  expect(await ask(path, method)).toMatch(/^404 /)
})

it('refuses an address that is taken', async () => {
  const [, port] = monitor.address.split(':')
  await expect(Monitor.open({ host: '127.0.0.1', port: Number(port) })).rejects.toThrow('EADDRINUSE')
})
