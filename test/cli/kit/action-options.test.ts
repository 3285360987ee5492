import { describe, expect, it } from '@jest/globals'
import { Command } from 'commander'
import { checkOptions } from '../../../cli/kit/action-options'

function run(...words: string[]): void {
  const command = new Command('things').argument('<action>').exitOverride()
  command.option('--count <count>', 'how many', '1').option('--json', 'print JSON')
  command.action((action: string) => checkOptions(command, action, { count: ['buy', 'sell'] }))
  command.parse(words, { from: 'user' })
}

describe('an option of a command with several actions', () => {
  it('is refused where it would be ignored', () => {
    const refused = expect.objectContaining({
      message: '--count has no effect on `crucible things show`.',
      hint: 'Leave it out; it belongs to buy, sell.',
    })
    expect(() => run('show', '--count', '3')).toThrow(refused)
  })

  it('is taken where it belongs, by default, and if it is of all actions', () => {
    run('sell', '--count', '3')
    run('show')
    run('show', '--json')
  })
})
