import { Argument, type Command } from 'commander'
import type { Cli } from '../../cli'
import { completionScript, SHELLS, type Shell } from '../../kit/completion'
import { examples } from '../../examples'
import { makeProgram } from '../../program'

export function define(command: Command, cli: Cli): void {
  command
    .description('Print a completion script for commands, flags, job ids and job names.')
    .addArgument(new Argument('<shell>', 'for which shell').choices(SHELLS))
    .addHelpText(
      'after',
      examples(
        ['eval "$(crucible completion bash)"', 'in ~/.bashrc'],
        ['eval "$(crucible completion zsh)"', 'in ~/.zshrc, after compinit'],
        ['crucible completion fish > ~/.config/fish/completions/crucible.fish', 'once'],
      ),
    )
    .action((shell: Shell) => {
      const script = completionScript(makeProgram(cli, { isWanted: () => true }), shell)
      cli.out.json({ shell, script })
      cli.out.block(script)
    })
}
