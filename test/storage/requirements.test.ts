import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { readRequirements } from '../../storage/requirements'
import { testFolder } from '../support/folders'

const TEXT = '# training\ntorch==2.9.0\n\nnumpy>=2,<3  # arrays\ndatasets[audio] ~= 4.1\n'

describe('the requirements of a job', () => {
  const read = (setup: string | undefined, text = TEXT): Promise<string[] | undefined> => {
    const folder = testFolder('code')
    writeFileSync(join(folder, 'requirements.txt'), text)
    return readRequirements(folder, setup)
  }

  it.each([
    'pip install -r requirements.txt',
    'python3 -m pip install -q --requirement requirements.txt && ./prepare.sh',
    'apt-get update\npip3 install -r ./requirements.txt\n',
  ])('are the lines of the file that setup installs: %j', async (setup) => {
    expect(await read(setup)).toEqual(['torch==2.9.0', 'numpy>=2,<3', 'datasets[audio] ~= 4.1'])
  })

  it.each([
    undefined,
    'make',
    'pip install torch',
    'pip install -r other.txt',
    'pip install -r ../requirements.txt',
    'pip install -r /etc/requirements.txt',
    'pip install -r requirements.txt --index-url https://example.org',
  ])('are left to setup if it does something else: %j', async (setup) => {
    expect(await read(setup)).toBeUndefined()
  })

  it.each([
    '--index-url https://example.org',
    'torch @ https://example.org/t.whl',
    './local',
    'x; python_version<"3"',
  ])('are left to setup if a line is no plain name: %s', async (line) => {
    expect(await read('pip install -r requirements.txt', `torch\n${line}\n`)).toBeUndefined()
  })

  it('are left to setup if the file is empty', async () => {
    expect(await read('pip install -r requirements.txt', '# nothing\n')).toBeUndefined()
  })
})
