import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { hostname } from 'node:os'
import { describe, expect, it } from '@jest/globals'
import { identify } from '../../service/process-identity'
import { identityOf, isDeadHere, parseIdentity } from '../../service/worker-identity'

const OWN = identityOf('ec2')

/** An identity with other values. */
function changed(values: Record<string, string>, host = hostname()): string {
  const parts = new URLSearchParams(OWN.slice(OWN.indexOf('?')))
  for (const [name, value] of Object.entries(values)) parts.set(name, value)
  return `ec2@${host}?${parts.toString()}`
}

describe('the identity of a worker', () => {
  it('names its role, its host and its process', () => {
    expect(parseIdentity(OWN)).toMatchObject({
      role: 'ec2',
      host: hostname(),
      process: identify(process.pid),
    })
  })

  it.each(['', '4711@host', 'ec2@host', 'ec2@host?pid=1', 'ec2@host?pid=x&started=1', `${OWN}?pid=1`])(
    'is nothing that this product did not write: %p',
    (text) => {
      expect(parseIdentity(text)).toBeUndefined()
      expect(isDeadHere(text)).toBe(false)
    },
  )
})

describe('a worker', () => {
  it('is dead once its process has ended, and when another process has its number', async () => {
    const child = spawn('sleep', ['60'])
    const started = identify(child.pid!)!.started
    const other = changed({ pid: String(child.pid), started })
    expect(isDeadHere(other)).toBe(false)
    child.kill()
    await once(child, 'exit')
    expect(isDeadHere(other)).toBe(true)
    expect(isDeadHere(changed({ started: `${started}9` }))).toBe(true)
  })

  it('is dead when its container has started again', () => {
    expect(isDeadHere(changed({ ns: 'pid:[1]' }))).toBe(true)
  })

  it('may live on another host', () => {
    const dead = { started: 'long ago' }
    expect(isDeadHere(changed(dead))).toBe(true)
    expect(isDeadHere(changed(dead, 'elsewhere'))).toBe(false)
  })
})
