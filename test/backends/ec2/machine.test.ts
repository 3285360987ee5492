import { spawnSync } from 'node:child_process'
import { describe, expect, it } from '@jest/globals'
import { readRunnerFile } from '../../../backends/bootstrap'
import { readUserData } from '../../../backends/ec2/launch/template'

describe('the user data of a machine on EC2', () => {
  it('has at most 16 KiB, and holds its program whole', () => {
    expect(Buffer.byteLength(readUserData())).toBeLessThan(16 * 1024)
    expect(readUserData()).toContain(readRunnerFile('crucible_runner/machine_timer.py'))
    const checked = spawnSync('sh', ['-n'], { input: readUserData(), encoding: 'utf8' })
    expect(checked).toMatchObject({ status: 0, stderr: '' })
  })
})
