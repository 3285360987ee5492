import argparse
import random

import torch
import torch.nn as nn


class Encoder(nn.Module):
    def __init__(self, input_dim, emb_dim, hid_dim):
        super().__init__()
        self.embedding = nn.Embedding(input_dim, emb_dim)
        self.rnn = nn.GRU(emb_dim, hid_dim, bidirectional=True)
        self.fc = nn.Linear(hid_dim * 2, hid_dim)
        self.dropout = nn.Dropout(0.5)

    def forward(self, src):
        embedded = self.dropout(self.embedding(src))
        outputs, hidden = self.rnn(embedded)
        hidden = torch.tanh(self.fc(torch.cat((hidden[-2], hidden[-1]), dim=1)))
        return outputs, hidden


class Decoder(nn.Module):
    def __init__(self, output_dim, emb_dim, hid_dim):
        super().__init__()
        self.embedding = nn.Embedding(output_dim, emb_dim)
        self.attn = nn.Linear(hid_dim * 3, hid_dim)
        self.v = nn.Linear(hid_dim, 1, bias=False)
        self.rnn = nn.GRU(hid_dim * 2 + emb_dim, hid_dim)
        self.fc_out = nn.Linear(hid_dim * 3 + emb_dim, output_dim)
        self.dropout = nn.Dropout(0.5)

    def forward(self, token, hidden, encoder_outputs):
        embedded = self.dropout(self.embedding(token.unsqueeze(0)))
        length = encoder_outputs.shape[0]
        query = hidden.unsqueeze(1).repeat(1, length, 1)
        states = encoder_outputs.permute(1, 0, 2)
        energy = torch.tanh(self.attn(torch.cat((query, states), dim=2)))
        a = torch.softmax(self.v(energy).squeeze(2), dim=1).unsqueeze(1)
        weighted = torch.bmm(a, states).permute(1, 0, 2)
        output, hidden = self.rnn(torch.cat((embedded, weighted), dim=2), hidden.unsqueeze(0))
        prediction = self.fc_out(torch.cat((output.squeeze(0), weighted.squeeze(0), embedded.squeeze(0)), dim=1))
        return prediction, hidden.squeeze(0)


class Seq2Seq(nn.Module):
    def __init__(self, encoder, decoder):
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder

    def forward(self, src, trg, teacher_forcing_ratio=0.5):
        outputs = []
        encoder_outputs, hidden = self.encoder(src)
        token = trg[0]
        for t in range(1, trg.shape[0]):
            output, hidden = self.decoder(token, hidden, encoder_outputs)
            outputs.append(output)
            token = trg[t] if random.random() < teacher_forcing_ratio else output.argmax(1)
        return torch.stack(outputs)


parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=32)
parser.add_argument("--max-len", type=int, default=20)
args = parser.parse_args()
model = Seq2Seq(Encoder(4000, 128, 256), Decoder(3000, 128, 256))
optimizer = torch.optim.Adam(model.parameters())
criterion = nn.CrossEntropyLoss()
for epoch in range(10):
    for batch in range(500):
        src = torch.randint(0, 4000, (args.max_len, args.batch_size))
        trg = torch.randint(0, 3000, (args.max_len, args.batch_size))
        optimizer.zero_grad()
        output = model(src, trg)
        loss = criterion(output.view(-1, 3000), trg[1:].view(-1))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1)
        optimizer.step()
