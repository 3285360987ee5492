import { describe, expect, it } from '@jest/globals'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BackendError } from '../../backends/errors'
import { CrucibleError, errorFromFailure, EXIT_CODES, toCrucibleError } from '../../client/errors'
import { FAILURE_CLASSES } from '../../core/failure'
import { StoreError } from '../../storage/store'
import { ConfigError } from '../../service/config-error'

function grpc(code: number, depth = 0): Error {
  const error = Object.assign(new Error('14 something'), { code })
  return depth === 0 ? error : new Error('call failed', { cause: grpc(code, depth - 1) })
}

describe('what was thrown, as an exit code', () => {
  it('is stable', () => {
    expect(EXIT_CODES).toEqual({
      failed: 1,
      usage: 2,
      capacity: 3,
      permission: 4,
      'not-found': 5,
      unconfirmed: 6,
      unavailable: 7,
      'not-survived': 8,
      conditional: 9,
      interrupted: 130,
    })
  })

  it.each<[string, unknown, number]>([
    ['our own error', new CrucibleError('unconfirmed', 'x'), 6],
    ['anything', new Error('x'), 1],
    ['no error at all', 'text', 1],
    ['settings', new ConfigError(['CRUCIBLE_LEASE is "x"']), 2],
    ['a store that is not one', new StoreError('x', { isTransient: false, code: 'BAD_URL' }), 2],
    ['a store that does not answer', new StoreError('x', { isTransient: true }), 7],
    ['a store that refuses', new StoreError('x', { isTransient: false, code: 'EACCES' }), 4],
    ['a damaged document', new StoreError('x', { isTransient: false, code: 'BAD_DOCUMENT' }), 1],
    ['a folder that may not be written', Object.assign(new Error('x'), { code: 'EROFS' }), 4],
    ['a server that is down', grpc(14), 7],
    ['a server that is slow, told by a cause', grpc(4, 3), 7],
    ['a server that wants a key', grpc(16), 4],
    ['a server that forbids', grpc(7), 4],
    ['a backend without capacity', new BackendError({ class: 'capacity', message: 'x' }), 3],
  ])('%s', (_name, thrown, exitCode) => {
    expect(toCrucibleError(thrown).exitCode).toBe(exitCode)
  })

  it.each(["Namespace not found: 'mine'", '5 NOT_FOUND: Namespace mine is not found.'])(
    'names the namespace that the server lacks: %s',
    (text) => {
      expect(toCrucibleError(new Error(text))).toMatchObject({
        kind: 'usage',
        message: 'The Temporal server has no namespace "mine".',
        hint: 'Correct TEMPORAL_NAMESPACE or temporal.toml, or create the namespace.',
      })
    },
  )

  it.each([
    ['ENOENT', '/no/where: no such file or folder.', 1],
    ['EACCES', '/no/where: permission denied.', 4],
    ['ENOTDIR', '/no/where: a part of its path is a file.', 1],
    ['ENOSPC', '/no/where: the disk is full.', 1],
  ])('%s of a file is said in words', (code, message, exitCode) => {
    const thrown = Object.assign(new Error(`${code}: as Node says it`), { code, path: '/no/where' })
    expect(toCrucibleError(thrown)).toMatchObject({ message, exitCode })
  })

  it('names the setting of a missing folder for temporary files', () => {
    const path = join(tmpdir(), 'crucible-bundle-a1b2c3')
    const thrown = Object.assign(new Error('ENOENT'), { code: 'ENOENT', syscall: 'mkdtemp', path })
    expect(toCrucibleError(thrown)).toMatchObject({
      kind: 'usage',
      message: `The folder for temporary files, ${tmpdir()}, cannot be used: no such file or folder.`,
      hint: 'Set TMPDIR to a folder in which you may write, such as /tmp.',
    })
  })

  it.each(FAILURE_CLASSES.map((failureClass) => ({ failureClass })))(
    'failure class $failureClass',
    ({ failureClass }) => {
      const { exitCode, hint } = errorFromFailure({ class: failureClass, message: 'x', hint: 'y' }, undefined)
      const expected: Partial<Record<typeof failureClass, number>> = {
        capacity: 3,
        quota: 3,
        auth: 4,
        invalid: 2,
        transient: 7,
        throttled: 7,
      }
      expect(exitCode).toBe(expected[failureClass] ?? 1)
      expect(hint).toBe('y')
    },
  )
})
